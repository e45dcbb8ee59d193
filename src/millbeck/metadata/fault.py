"""The one error of this package: the metadata log says something that can not be."""

from __future__ import annotations


class MetadataFault(Exception):
    """A record that can not be read or replayed. The process that meets it must stop: its state is no longer known."""
