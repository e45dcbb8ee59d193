"""The single writer of the metadata log: requests in, records and replies out. Pure."""
