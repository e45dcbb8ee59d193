"""Connectors: what they are called, and their settings."""
