"""Records that a pipeline leaves out, as they are kept between its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from millbeck.pipeline.errors import DefinitionError
from millbeck.pipeline.running.skips import SKIPS_MAX, SkippedRecord, Skips


def test_what_is_added_is_there_once_and_in_order(tmp_path: Path) -> None:
    skips = Skips(tmp_path)
    assert skips.read() == []
    first, second = SkippedRecord("orders", 0, 12), SkippedRecord("a.b-c_d", 7, 0)
    skips.add([first])
    assert skips.add([second, first]) == [first, second]
    assert Skips(tmp_path).read() == [first, second]


def test_the_oldest_are_forgotten(tmp_path: Path) -> None:
    skips = Skips(tmp_path)
    kept = skips.add([SkippedRecord("orders", 0, offset) for offset in range(SKIPS_MAX + 5)])
    assert (len(kept), kept[0].offset) == (SKIPS_MAX, 5)


@pytest.mark.parametrize("text", ["orders", "orders:0", "orders:x:1", "orders:0:-1", "or ders:0:1", ":0:1"])
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match="expected TOPIC:PARTITION:OFFSET"):
        SkippedRecord.parse(text)


def test_a_damaged_file_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "skips.json").write_text("[")
    with pytest.raises(DefinitionError, match=r"skips\.json cannot be read"):
        Skips(tmp_path).read()
