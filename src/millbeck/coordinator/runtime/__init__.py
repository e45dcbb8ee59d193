"""Runtime shared by all coordinators: one single-writer shard for each partition of an internal topic."""
