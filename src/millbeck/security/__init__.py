"""Authorization: principals and the authorizer. Pure."""
