"""Share groups: the state of what they were given, kept in ``__share_group_state`` and by a partition's leader."""
