"""How images change: `advance` folds records into the next image and says what is different."""

from __future__ import annotations

from millbeck.metadata.delta.metadata_delta import Fold, MetadataDelta, advance

__all__ = ["Fold", "MetadataDelta", "advance"]
