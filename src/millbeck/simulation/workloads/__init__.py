"""Client workloads during faults, recorded in a `History` for the checkers."""
