"""Share groups in the group coordinator: members, assignments and the initialization of share partitions."""
