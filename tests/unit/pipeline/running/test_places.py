"""Where in a pipeline's file an error arose."""

from __future__ import annotations

from pathlib import Path

import pytest

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.running.definition import load
from millbeck.pipeline.running.places import placed

FILE = """
from millbeck.pipeline.topology.windows import hopping

def build(topology):
    if topology == "ours":
        hopping(
            "5 minutes", advance="6 minutes")
    raise KeyError(topology)
"""


def test_the_file_the_line_and_the_operator_are_named(tmp_path: Path) -> None:
    file = tmp_path / "revenue.py"
    file.write_text(FILE)
    build = load(file).build
    with pytest.raises(TopologyError, match=rf"^{file}:6 \(hopping\): windows of 5 minutes"), placed(file):
        build("ours")  # type: ignore[arg-type]


def test_errors_of_the_users_own_code_are_left_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "revenue.py"
    file.write_text(FILE)
    with pytest.raises(KeyError, match="theirs"), placed(file):
        load(file).build("theirs")  # type: ignore[arg-type]
