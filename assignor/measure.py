"""How good an assignment is: load of every member, its spread, and what moved."""
