"""Groups of the classic protocol: generations, and a leader that assigns. No I/O, no clock."""
