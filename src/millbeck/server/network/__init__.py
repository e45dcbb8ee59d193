"""Listeners and connections: reading requests, sending replies, and limiting the memory of both."""
