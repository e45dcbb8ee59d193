"""The node: listeners, connections, handlers and the drivers that run the state machines."""
