"""The commands of docs/security.md work as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from millbeck.cli.main import cli
from millbeck.host import real_environment
from millbeck.server.local.secured import read_secured
from millbeck.testing import broker

PAGE = Path(__file__).parents[2] / "docs" / "security.md"
COMMAND = re.compile(r"^\$ millbeck (.*)$", re.MULTILINE)


def commands_of(heading: str, *words: str) -> list[str]:
    """The commands below a heading (or a paragraph's bold beginning) that begin with these words."""
    text = PAGE.read_text("utf-8")
    section = text[text.index(heading) :].split("\n## ")[0]
    found = [line for line in COMMAND.findall(section) if line.split()[: len(words)] == list(words)]
    assert found, f"the page has no commands {words} below {heading}"
    return found


def run(line: str) -> str:
    done = CliRunner().invoke(cli, shlex.split(line), env={"XDG_CONFIG_HOME": "none"})
    assert done.exit_code == 0, f"{line}: {done.output}"
    return done.stdout


def test_an_authority_and_its_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    heading = "**An authority of your own.**"
    for line in (*commands_of(heading, "cert", "create"), *commands_of(heading, "cert", "renew")):
        run(line.replace("/etc/millbeck/ca", str(tmp_path / "ca")))
    assert {"broker-1.pem", "alice.pem"} <= {path.name for path in tmp_path.iterdir()}


def test_users_and_acls_of_a_secured_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heading = "## A secured cluster in one command"
    with broker(data=tmp_path, secure=True) as node:
        files = real_environment().files
        read_secured(files, str(tmp_path)).write_client_files(files, node.bootstrap)
        monkeypatch.chdir(tmp_path / "security")
        Path("alice.txt").write_text("alice-secret\n")
        for line in (*commands_of(heading, "user"), *commands_of(heading, "acl")):
            run(line)
        shown = run("acl list --principal User:alice --command-config admin.properties")
        assert "orders" in shown
        assert "billing" in shown
        for line in commands_of("## Audit", "audit", "search"):
            done = CliRunner().invoke(cli, shlex.split(line.split(" --command-config")[0] + " --file audit-1.log"))
            assert done.exit_code in (0, 1), done.output
