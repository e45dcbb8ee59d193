"""OAuth 2.0 tokens: validation by brokers, verification keys, and requests of clients. Pure."""
