"""Share groups on a broker: the share partitions it leads, its consumers' sessions, and the way to their state."""
