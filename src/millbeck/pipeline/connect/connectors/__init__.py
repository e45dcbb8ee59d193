"""Connectors: their names and settings."""
