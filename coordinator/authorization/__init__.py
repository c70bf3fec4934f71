"""Who may do what: ACLs, and the authorizer that goes by them."""
