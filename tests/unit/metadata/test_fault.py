"""The fault that ends a process."""

from __future__ import annotations

from millbeck.kernel.errors import ApiError
from millbeck.metadata.fault import MetadataFault


def test_a_fault_is_no_answer_to_a_client() -> None:
    assert not issubclass(MetadataFault, ApiError)
    assert str(MetadataFault("topic is used twice")) == "topic is used twice"
