from __future__ import annotations

import random

import pytest

from millbeck.kernel.ids import uuid_text
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.files import SimFiles
from millbeck.storage.atomic_file import read_file, write_file
from millbeck.storage.properties import (
    MetaProperties,
    MetaPropertiesError,
    parse_properties,
    read_meta_properties,
    write_meta_properties,
)

META = MetaProperties(cluster_id="4L6g3nShT-eMCtK--X86sw", node_id=3, directory_id=bytes(range(16)))


def files_with(content: str | None) -> SimFiles:
    files = SimDisk(random.Random(1)).mount()
    files.make_directory("/data")
    if content is not None:
        write_file(files, "/data/meta.properties", content.encode(), sync=True)
    return files


def test_what_is_written_is_read() -> None:
    files = files_with(None)
    assert read_meta_properties(files, "/data") is None
    write_meta_properties(files, "/data", META)
    assert read_meta_properties(files, "/data") == META
    content = read_file(files, "/data/meta.properties", 1000)
    assert content is not None
    assert b"version=1\n" in content
    assert b"node.id=3\n" in content


def test_a_file_that_kafka_wrote_is_read() -> None:
    content = (
        "#\n#Sun Nov 16 10:00:00 UTC 2025\nnode.id=3\nversion=1\n"
        f"directory.id={uuid_text(bytes(range(16)))}\ncluster.id=4L6g3nShT-eMCtK--X86sw\n"
    )
    assert read_meta_properties(files_with(content), "/data") == META


@pytest.mark.parametrize(
    "content",
    ["", "version=0\nbroker.id=1\n", "version=1\nnode.id=x\ncluster.id=c\ndirectory.id=AAAA", "version=1\nnode.id=1\n"],
)
def test_what_is_missing_or_wrong_is_said(content: str) -> None:
    with pytest.raises(MetaPropertiesError, match=r"meta\.properties"):
        read_meta_properties(files_with(content), "/data")


def test_java_properties() -> None:
    text = "# comment\n! comment\n\na=1\n b : 2 \nc\\:d=x\\=y\nempty=\nalone\n"
    assert parse_properties(text) == {"a": "1", "b": "2", "c:d": "x=y", "empty": "", "alone": ""}
