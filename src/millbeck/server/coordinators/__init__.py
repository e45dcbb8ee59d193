"""The group, transaction and share coordinators of this node: a shard for each internal partition that it leads."""
