"""Faults on real processes: a cluster in network namespaces and disk images of its own, real clients, the checkers."""
