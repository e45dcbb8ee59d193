"""Certificates and key stores as bytes: reading them, naming their owners, comparing them. No files, no sockets."""
