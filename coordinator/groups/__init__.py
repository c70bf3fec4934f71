"""What groups are and remember: the classic state machine, and one registry for both protocols. No I/O, no clock."""
