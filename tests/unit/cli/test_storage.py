from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.kernel.ids import parse_uuid

Run = Callable[..., Result]


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path}/one,{tmp_path}/two\nnode.id=7\n")
    return str(path)


def test_directories_are_formatted_and_described(run: Run, config: str, tmp_path: Path) -> None:
    cluster = run("storage", "random-uuid").stdout.strip()
    formatted = run("storage", "format", "-c", config, "-t", cluster, "--standalone")
    assert formatted.exit_code == 0
    assert formatted.stdout.splitlines() == [
        f"formatted {tmp_path}/{name} with metadata.version 4.3-IV0, cluster {cluster}" for name in ("one", "two")
    ]
    rows = json.loads(run("storage", "info", "-c", config, "-o", "json").stdout)
    assert [(row["directory"], row["state"], row["cluster_id"], row["node_id"]) for row in rows] == [
        (f"{tmp_path}/{name}", "formatted", cluster, 7) for name in ("one", "two")
    ]
    assert all(len(row["directory_id"]) == 22 for row in rows)


def test_formatting_twice_needs_to_be_meant(run: Run, fails: Callable[..., str], config: str) -> None:
    assert run("storage", "format", "-c", config).exit_code == 0
    assert "already formatted" in fails("storage", "format", "-c", config)
    assert run("storage", "format", "-c", config, "--ignore-formatted").exit_code == 0


def test_what_is_not_formatted_is_said_to_be(run: Run, config: str, tmp_path: Path) -> None:
    shown = run("storage", "info", "-c", config)
    assert shown.exit_code == 1
    assert [line.split()[:3] for line in shown.stdout.splitlines()[1:]] == [
        [f"{tmp_path}/{name}", "not", "formatted"] for name in ("one", "two")
    ]


def test_ids_and_releases_are_checked(fails: Callable[..., str], config: str) -> None:
    assert "is not a uuid" in fails("storage", "format", "-c", config, "-t", "short")
    assert fails("storage", "format", "-c", config, "-r", "0.9")


def test_voters_are_in_the_log_only_where_the_release_has_that(
    run: Run, fails: Callable[..., str], config: str, tmp_path: Path
) -> None:
    refused = fails("storage", "format", "-c", config, "--standalone", "-r", "3.8-IV0")
    assert "from 3.9-IV0 on" in refused
    assert run("storage", "format", "-c", config, "-r", "3.8-IV0").exit_code == 0
    assert not (tmp_path / "one" / "__cluster_metadata-0").exists()


def test_a_new_id_each_time(run: Run) -> None:
    ids = {run("storage", "random-uuid").stdout.strip() for _ in range(3)}
    assert len(ids) == 3
    assert all(len(parse_uuid(each)) == 16 for each in ids)
