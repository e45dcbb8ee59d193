"""Share partitions: record states, kept in ``__share_group_state`` and by the partition's leader."""
