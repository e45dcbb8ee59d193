from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def test_a_file_must_be_named_once(fails: Callable[..., str]) -> None:
    assert "name one server.properties file" in fails("server")
    assert "name one server.properties file" in fails("server", "a", "--config", "b")


def test_a_file_that_is_not_there(fails: Callable[..., str]) -> None:
    assert "No such file" in fails("server", "--config", "nowhere.properties")


def test_a_directory_is_formatted_first(fails: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path}/logs\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    assert "millbeck storage format" in fails("server", "--config", str(path))


def test_settings_that_are_gone_name_their_replacement(fails: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path}/logs\nzookeeper.connect=localhost:2181\n")
    assert "process.roles" in fails("server", str(path))
