"""Seeded runs of nodes and clusters under faults, campaigns of many seeds, and shrinking of those that fail."""
