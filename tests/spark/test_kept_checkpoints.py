"""The checkpoints and the data directory of every release go on under this one, with their offsets and their state."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.errors import TopologyError
from tests.spark.kept_checkpoint import FIXTURES, PLACE, move, put, run_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RELEASES = sorted(path.name.removesuffix(".tar.gz") for path in FIXTURES.glob("*.tar.gz"))


def test_there_is_one_for_this_release() -> None:
    assert RELEASES


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_queries_go_on(release: str, spark: SparkSession, tmp_path: Path) -> None:
    from millbeck.testing import broker
    from tests.spark.live_log import LiveLog

    with tarfile.open(FIXTURES / f"{release}.tar.gz") as archive:
        # The argument came with 3.11.4; the archive is our own.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)
    move(tmp_path / "checkpoints", PLACE, str(tmp_path / "checkpoints"))
    with broker(data=tmp_path / "data") as node:
        log = LiveLog(node)
        put(node.bootstrap, "numbers", [("a", '{"n": 5}', 70)])
        with pytest.raises(TopologyError, match='emit="final"'):
            run_queries(spark, node.bootstrap, tmp_path / "checkpoints", emit="update")
        run_queries(spark, node.bootstrap, tmp_path / "checkpoints")
        found = {
            name: [(record.key or b"", record.value or b"") for _, record in log.read(name)]
            for name in ("counts", "windows", "joined", "copies")
        }
        log.close()
    assert [value for _, value in found["copies"]] == [b'{"n": %d}' % number for number in range(1, 6)]
    # Counts of a batch leave at its end: two of the key a came with the first.
    assert [int(value) for key, value in found["counts"] if key == b"a"] == [2, 3]
    assert [int(value) for key, value in found["counts"] if key == b"b"] == [1, 2]
    assert sorted(value for _, value in found["joined"]) == [b"Ada 1", b"Ada 3", b"Ada 5", b"Bob 2", b"Bob 4"]
    assert {json.loads(key)["key"]: int(value) for key, value in found["windows"]} == {"a": 2, "b": 1}
