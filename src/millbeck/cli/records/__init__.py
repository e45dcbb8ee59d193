"""Format records and log files as text."""
