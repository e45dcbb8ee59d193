"""Fetch requests: reads with long polling, as full fetches or in incremental fetch sessions."""
