"""A registry in memory answers as registries do."""

from __future__ import annotations

import pickle

import pytest

from millbeck.client.schemas.errors import UnknownSchema
from millbeck.client.schemas.model import AVRO, MemorySchemas, RegisteredSchema, Schema, subject_of

FIRST, SECOND = Schema(AVRO, '"int"'), Schema(AVRO, '"long"')


def test_one_schema_has_one_id_whatever_its_subjects_are() -> None:
    schemas = MemorySchemas()
    assert [schemas.register("a", FIRST), schemas.register("a", SECOND), schemas.register("b", FIRST)] == [1, 2, 1]
    assert schemas.register("a", FIRST) == 1
    assert schemas.latest("a") == RegisteredSchema(2, SECOND)
    assert schemas.latest("b") == RegisteredSchema(1, FIRST)
    assert schemas.by_id(2) == SECOND
    assert schemas.lookup("a", FIRST) == RegisteredSchema(1, FIRST)
    with pytest.raises(UnknownSchema, match="subject b in memory does not have this schema"):
        schemas.lookup("b", SECOND)


def test_what_is_not_there_is_named() -> None:
    schemas = MemorySchemas("here")
    with pytest.raises(UnknownSchema, match="id 7 in here"):
        schemas.by_id(7)
    with pytest.raises(UnknownSchema, match="no schema is registered for orders-value in here"):
        schemas.latest(subject_of("orders", "value"))


def test_a_worker_has_a_copy() -> None:
    schemas = MemorySchemas()
    schemas.register("a", FIRST)
    assert pickle.loads(pickle.dumps(schemas)).by_id(1) == FIRST
