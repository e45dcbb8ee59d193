"""The simulator: whole nodes in one process, in virtual time, from one seed."""
