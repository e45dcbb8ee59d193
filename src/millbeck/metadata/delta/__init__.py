"""Deltas of the metadata image: `advance` applies records to an image and returns the next image and the changes."""

from __future__ import annotations

from millbeck.metadata.delta.metadata_delta import IncrementalReplay, MetadataDelta, advance

__all__ = ["IncrementalReplay", "MetadataDelta", "advance"]
