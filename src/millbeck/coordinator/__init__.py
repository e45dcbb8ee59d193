"""State machines kept in internal topics, one shard for each partition. Pure."""
