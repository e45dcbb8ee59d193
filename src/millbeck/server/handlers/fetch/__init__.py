"""Fetch: long-poll reads, whole or by session."""
