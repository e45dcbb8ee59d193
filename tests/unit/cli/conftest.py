"""The command as a user types it, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click.testing
import pytest

from millbeck.cli.main import cli

Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs ``millbeck`` with arguments and looks at nothing of the environment's."""

    def invoke(*arguments: str, stdin: bytes | str | None = None, **variables: str) -> click.testing.Result:
        environment: dict[str, str | None] = {
            "MILLBECK_BOOTSTRAP": None,
            "MILLBECK_PROFILE": None,
            "XDG_CONFIG_HOME": str(tmp_path / "no-configuration"),
            **variables,
        }
        return click.testing.CliRunner().invoke(
            cli, list(arguments), input=stdin, env=environment, prog_name="millbeck"
        )

    return invoke


@pytest.fixture
def fails(run: Run) -> Callable[..., str]:
    """Runs a command that must fail as all do: exit code 1, nothing printed, one line on standard error, returned."""

    def invoke(*arguments: str, stdin: bytes | str | None = None, **variables: str) -> str:
        result = run(*arguments, stdin=stdin, **variables)
        assert result.exit_code == 1, result.output
        assert result.stdout == ""
        assert result.stderr.startswith("millbeck: ")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("millbeck: ").rstrip("\n")

    return invoke
