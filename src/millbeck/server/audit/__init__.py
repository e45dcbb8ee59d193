"""The audit of a node: events of its components are folded and written to a file and a topic in the background."""
