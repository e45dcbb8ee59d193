"""What users are told has one base, and a topic that changed counts as lost data."""

from __future__ import annotations

from millbeck.pipeline import errors


def test_one_except_catches_them_all() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    assert len(kinds) >= 8
    assert all(issubclass(kind, errors.PipelineError) for kind in kinds)
    assert issubclass(errors.TopicChanged, errors.RecordsLost)
