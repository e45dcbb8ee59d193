"""Committed offsets: kept, fetched, deleted, expired."""
