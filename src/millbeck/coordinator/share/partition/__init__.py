"""What a partition's leader knows of one share group's progress on it, as pure state."""
