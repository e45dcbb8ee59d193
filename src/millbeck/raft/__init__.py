"""State machine of the KRaft quorum. Pure."""
