"""A directory is opened as what it was made: with locks or without, one node or several."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from millbeck.cli.nodes.up_directory import check_directory, secure_nodes


def formatted(data: Path, *nodes: str) -> Path:
    for node in nodes:
        (data / node).mkdir(parents=True, exist_ok=True)
        (data / node / "meta.properties").write_text("")
    return data


def refusal(data: Path, *, nodes: int = 1, secure: bool = False) -> str:
    with pytest.raises(click.UsageError) as raised:
        check_directory(str(data), node_count=nodes, is_secure=secure)
    return raised.value.message


def test_a_new_directory_may_become_anything(tmp_path: Path) -> None:
    for nodes in (1, 3):
        for secure in (False, True):
            check_directory(str(tmp_path / "new"), node_count=nodes, is_secure=secure)


def test_locks_are_neither_left_out_nor_added_later(tmp_path: Path) -> None:
    plain = formatted(tmp_path / "plain", ".")
    several = formatted(tmp_path / "several", "node-1", "node-2")
    assert "was created without --secure" in refusal(plain, secure=True)
    assert "was created without --secure" in refusal(several, nodes=2, secure=True)
    assert "give the number of nodes with --nodes" in refusal(several)
    locked = tmp_path / "locked"
    locked.mkdir()
    secure_nodes(str(locked), [1, 2], host="127.0.0.1")
    formatted(locked, "node-1")
    assert "holds a secured cluster: add --secure" in refusal(locked)
    assert "holds a secured cluster: add --secure" in refusal(locked, nodes=2)
    check_directory(str(locked), node_count=1, is_secure=True)
    formatted(locked, "node-2")
    assert "give the number of nodes with --nodes" in refusal(locked, secure=True)
    check_directory(str(locked), node_count=2, is_secure=True)


def test_what_is_missing_of_a_cluster_that_has_begun_is_told(tmp_path: Path) -> None:
    secure_nodes(str(tmp_path), [1], host="")
    formatted(tmp_path, "node-1")
    (tmp_path / "security" / "secrets.properties").unlink()
    with pytest.raises(click.ClickException, match="is missing: restore it"):
        secure_nodes(str(tmp_path), [1], host="")
