"""What every coordinator shares: one single-writer shard for each partition of its internal topic."""
