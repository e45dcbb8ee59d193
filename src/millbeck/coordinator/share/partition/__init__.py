"""The state of a share partition on the partition's leader. Pure."""
