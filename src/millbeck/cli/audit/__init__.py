"""Reading, selecting and printing of audit events for ``millbeck audit``."""
