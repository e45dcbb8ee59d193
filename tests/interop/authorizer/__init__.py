"""What a client may do, asked of two systems with the same ACLs: the requests, the users, and the answers."""
