"""millbeck from this tree: the node that `millbeck server --config` runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

from bench.systems.node import Node, NodeFailed
from tools.peers import ROOT

CLUSTER_ID = "bWlsbGJlY2staW50ZXJvcA"


def cli_command(*arguments: str) -> list[str]:
    """A command line of the millbeck of this tree, in the interpreter that runs us."""
    return [sys.executable, "-m", "millbeck.cli.main", *arguments]


def cli_environment(tree: Path = ROOT) -> dict[str, str]:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(tree / "src")
    # An installed package has its bytecode; a tree that may not write any would be compiled anew at each start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


class Millbeck(Node):
    """millbeck as one combined node."""

    name = "millbeck"
    tree: ClassVar[Path] = ROOT

    def properties(self) -> dict[str, str]:
        return {"metrics.http.port": str(self.metrics_port)} | super().properties()

    def command(self) -> list[str]:
        return cli_command("server", "--config", str(self.config_path))

    def environment(self) -> dict[str, str]:
        return cli_environment(self.tree)

    def format_storage(self) -> None:
        done = subprocess.run(
            cli_command("storage", "format", "--cluster-id", CLUSTER_ID, "--config", str(self.config_path)),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode != 0:
            raise NodeFailed(f"storage format failed:\n{done.stdout}{done.stderr}")


def millbeck_of(directory: Path) -> type[Node]:
    """The millbeck of another checkout, compiled there, to measure a change beside what was before it."""
    if not (directory / "src" / "millbeck").is_dir():
        raise SystemExit(f"{directory}: no checkout of millbeck")

    class OtherTree(Millbeck):
        name = "other-tree"
        tree = directory.resolve()

    return OtherTree
