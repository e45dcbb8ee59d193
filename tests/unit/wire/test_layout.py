from __future__ import annotations

import pytest

from millbeck.wire.errors import SchemaError
from millbeck.wire.layout import VersionLayout, length_size, shape_of
from millbeck.wire.messages.fetch import FetchedPartition, FetchPartition, FetchRequest
from millbeck.wire.messages.group_offsets import OffsetDeleteRequestPartition
from millbeck.wire.messages.metadata import MetadataResponsePartition
from millbeck.wire.schema import bytes_, int64, records, schema_of, string, uuid


def test_fields_are_divided_by_version_and_tag() -> None:
    shape = shape_of(schema_of(FetchRequest), 15)
    assert [field.name for field in shape.tagged_fields(FetchRequest)] == ["cluster_id", "replica_state"]
    assert [field.name for field in shape.absent_fields(FetchRequest)] == ["replica_id"]
    assert [field.name for field in shape.plain_fields(FetchRequest)][:3] == ["max_wait_ms", "min_bytes", "max_bytes"]


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SchemaError, match="versions 4 to 18, not 19"):
        shape_of(schema_of(FetchRequest), 19)


SIZES = {
    "fixed only": (VersionLayout(9, False), FetchPartition, 28),
    "fixed, tag count": (VersionLayout(12, True), FetchPartition, 33),
    "arrays": (VersionLayout(4, False), MetadataResponsePartition, 18),
    "compact arrays": (VersionLayout(9, True), MetadataResponsePartition, 18),
    "null array and records": (VersionLayout(4, False), FetchedPartition, 30),
}


@pytest.mark.parametrize(("shape", "cls", "size"), SIZES.values(), ids=SIZES.keys())
def test_smallest_size_of_a_struct(shape: VersionLayout, cls: type, size: int) -> None:
    assert shape.size_min(cls) == size
    assert shape.element_size_min(cls, shape.flexible) == size


def test_smallest_size_of_primitives() -> None:
    shape = VersionLayout(0, False)
    assert shape.element_size_min(int64, False) == 8
    assert shape.element_size_min(uuid, True) == 16
    assert shape.element_size_min(string, False) == length_size(string) == 2
    assert shape.element_size_min(bytes_, False) == length_size(records) == 4
    assert shape.element_size_min(string, True) == 1


def test_fixed_format_only_without_tags_and_lengths() -> None:
    assert VersionLayout(0, False).fixed_format(OffsetDeleteRequestPartition) == "i"
    assert VersionLayout(9, False).fixed_format(FetchPartition) == "iiqqi"
    assert VersionLayout(12, True).fixed_format(FetchPartition) is None
    assert VersionLayout(4, False).fixed_format(MetadataResponsePartition) is None


def test_object_count_grows_with_the_fields() -> None:
    shape = VersionLayout(9, True)
    assert shape.object_count(string) == 1
    assert shape.object_count(MetadataResponsePartition) == 1 + 3 + 1
