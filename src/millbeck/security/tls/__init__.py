"""Parsing of certificates and key stores, and the principals of certificates. No files, no sockets."""
