"""SASL authentication: mechanisms, the state machine of a connection, and logins of clients. Pure."""
