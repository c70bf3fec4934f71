"""Groups of the classic protocol: generations, and a leader among the members who assigns. No I/O, no clock."""
