"""Who may do what: principals and the authorizer. Pure."""
