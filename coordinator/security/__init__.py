"""Who may connect, and who a client is: users, mechanisms of SASL, and the login of one connection."""
