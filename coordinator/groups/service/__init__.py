"""All groups together: who may do what, whose turn it is, what is kept and shown. No I/O, no clock."""
