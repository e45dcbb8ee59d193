"""Listeners and connections: bytes to requests, replies to bytes, and the memory both may hold."""
