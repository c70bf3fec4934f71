"""Who may connect, and who a client is: users, mechanisms of SASL, the login of one connection, TLS."""
