"""The quorum's state machine. Pure."""
