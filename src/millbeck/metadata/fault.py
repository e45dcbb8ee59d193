"""The error of this package: the metadata log is inconsistent."""

from __future__ import annotations


class MetadataFault(Exception):
    """A record cannot be decoded or replayed. The process must stop, since its state is no longer known."""
