from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import click
import pytest
from click.testing import Result

from millbeck import __version__
from millbeck.cli.main import COMMANDS, cli


def test_help_lists_every_command_without_loading_one() -> None:
    program = (
        "import sys\n"
        "from millbeck.cli.main import cli\n"
        "sys.argv = ['millbeck', '--help']\n"
        "try:\n    cli()\n"
        "finally:\n"
        "    assert not [name for name in sys.modules if name.startswith('millbeck.') and name.count('.') > 2]\n"
        "    assert [name for name in sys.modules if name.startswith('millbeck.cli.')] == ['millbeck.cli.main']\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name, (_, summary) in COMMANDS.items():
        assert name in done.stdout
        assert summary in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_verb_has_help_with_examples(run: Callable[..., Result], name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    verbs = list(command.commands.items()) if isinstance(command, click.Group) else [("", command)]
    assert verbs
    for verb, each in verbs:
        shown = run(name, *([verb] if verb else []), "--help")
        assert shown.exit_code == 0
        assert "Usage: millbeck " + name in shown.stdout
        assert f"millbeck {name}" in shown.stdout.split("Examples:")[1].split("Options:")[0]
        for parameter in each.params:
            assert not isinstance(parameter, click.Option) or parameter.hidden or parameter.help, parameter.name


def test_the_version(run: Callable[..., Result]) -> None:
    assert run("--version").stdout == f"millbeck, version {__version__}\n"


def test_what_is_wrong_is_one_line_and_exit_code_one(fails: Callable[..., str]) -> None:
    assert fails("frob") == "no such command 'frob' (see millbeck --help)"
    assert fails("topic", "create") == "no topic given (see millbeck topic create --help)"
    assert fails("topic", "list", "--nonsense").startswith("No such option '--nonsense'.")


def test_a_mistyped_command_is_guessed(fails: Callable[..., str]) -> None:
    assert fails("tpoic").startswith("no such command 'tpoic', did you mean topic?")


@pytest.mark.parametrize("arguments", [(), ("topic",)])
def test_nothing_to_do_shows_what_there_is(run: Callable[..., Result], arguments: tuple[str, ...]) -> None:
    shown = run(*arguments)
    assert shown.exit_code == 1
    assert "\nCommands:\n" in shown.stderr


def test_letters_that_cannot_be_shown_are_no_failure() -> None:
    program = [sys.executable, "-m", "millbeck.cli.main", "topic", "list", "--help"]
    done = subprocess.run(program, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"HOST:PORT,\\u2026" in done.stdout


def test_a_reader_who_leaves_is_no_failure() -> None:
    program = f"{sys.executable} -m millbeck.cli.main --help | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True)
    assert done.returncode in (0, 141)
    assert done.stderr == b""


def test_an_exit_code_is_passed_on(run: Callable[..., Result], tmp_path: object) -> None:
    path = f"{tmp_path}/server.properties"
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"log.dirs={tmp_path}/logs\n")
    assert run("storage", "info", "--config", path).exit_code == 1


def test_optimized_python_is_refused() -> None:
    done = subprocess.run([sys.executable, "-O", "-m", "millbeck.cli.main"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "-O" in done.stderr
