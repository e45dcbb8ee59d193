"""The audit of a node: events from its parts, folded, and written to a file and a topic without delaying anything."""
