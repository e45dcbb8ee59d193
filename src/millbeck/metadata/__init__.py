"""The cluster's metadata as an immutable image advanced by records. Pure."""
