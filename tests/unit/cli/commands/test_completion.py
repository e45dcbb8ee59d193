from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import Result

from millbeck.cli.commands.completion import SHELLS, script
from millbeck.cli.main import cli
from millbeck.cli.profiles import ProfileStore


def completed(*words: str) -> list[str]:
    """What is offered for the last of the words."""
    return [each.value for each in BashComplete(cli, {}, "millbeck", "X").get_completions([*words[:-1]], words[-1])]


def test_commands_verbs_and_options_are_completed() -> None:
    assert completed("topi") == ["topic"]
    assert completed("topic", "de") == ["delete", "delete-records", "describe"]
    assert completed("topic", "create", "--rep") == ["--replication-factor", "--replica-assignment"]
    assert completed("topic", "--create", "--rep") == ["--replication-factor", "--replica-assignment"]


def test_settings_are_completed() -> None:
    assert completed("topic", "create", "orders", "-c", "retention") == ["retention.bytes=", "retention.ms="]
    assert completed("topic", "alter", "orders", "--delete-config", "retention.ms,segment.j") == [
        "retention.ms,segment.jitter.ms"
    ]
    assert completed("up", "--set", "num.part") == ["num.partitions="]


def test_profiles_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("prod", "play", "local"):
        ProfileStore.of_user().save(name, {"bootstrap.servers": "host:1"}, replaces=False)
    assert completed("profile", "use", "p") == ["play", "prod"]
    assert completed("topic", "list", "--profile", "") == ["local", "play", "prod"]


@pytest.mark.parametrize("options", [("-b", "127.0.0.1:1"), ("-b", "nonsense"), ("--command-config", "nowhere")])
def test_nothing_is_said_when_the_cluster_cannot_be_asked(
    options: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert completed("topic", "describe", *options, "o") == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_installed_where_the_shell_looks(run: Callable[..., Result], tmp_path: Path, shell: str) -> None:
    places = {"XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    result = run("completion", "install", SHELL=f"/bin/{shell}", **places)
    assert result.exit_code == 0, result.output
    (path,) = (each for each in tmp_path.rglob("*millbeck*") if each.is_file())
    assert path.read_text() == script(shell)
    assert run("completion", "show", shell).stdout == f"{script(shell)}\n"


def test_a_shell_that_is_not_supported_is_named(fails: Callable[..., str]) -> None:
    assert "name the shell: bash, zsh, fish" in fails("completion", "install", SHELL="/bin/tcsh")


def test_bash_completes_with_the_script() -> None:
    commands = 'COMP_WORDS=(millbeck topic des); COMP_CWORD=2; _millbeck_completion millbeck; echo "${COMPREPLY[@]}"'
    environment = {**os.environ, "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))}
    done = subprocess.run(
        ["bash", "-c", f"{script('bash')}\n{commands}"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout == "describe\n"
