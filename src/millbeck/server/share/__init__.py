"""Share groups on a broker: the share partitions it leads, share sessions, and the persister of their state."""
