"""Who may do what: ACLs, and the authorizer that applies them."""
