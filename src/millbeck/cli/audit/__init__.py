"""Reads, selects and prints audit events for ``millbeck audit``."""
