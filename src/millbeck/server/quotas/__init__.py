"""Client quotas: which limit applies to a client, how much of it is used, and how long the client has to wait."""
