"""The worker: runs connectors in turns, and answers requests about them."""
