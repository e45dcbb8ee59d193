"""Cluster metadata as an immutable image that is advanced by records. Pure."""
