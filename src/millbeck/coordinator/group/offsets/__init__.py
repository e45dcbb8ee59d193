"""Committed offsets: commit, fetch, deletion and expiration."""
