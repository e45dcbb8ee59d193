"""Group coordinator: groups and their committed offsets, stored in ``__consumer_offsets``."""
