"""Authentication and authorization: principals, SASL mechanisms, ACLs and certificates. Pure."""
