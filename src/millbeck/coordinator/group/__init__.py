"""Groups and the offsets they commit, kept in ``__consumer_offsets``."""
