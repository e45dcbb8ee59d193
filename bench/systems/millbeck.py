"""millbeck from this tree: the node that `millbeck server --config` runs."""

from __future__ import annotations

import os
import subprocess
import sys

from tools.peers import ROOT

from bench.systems.node import Node, NodeFailed

CLUSTER_ID = "bWlsbGJlY2staW50ZXJvcA"


def cli_command(*arguments: str) -> list[str]:
    """A command line of the millbeck of this tree, in the interpreter that runs us."""
    return [sys.executable, "-m", "millbeck.cli.main", *arguments]


def cli_environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(ROOT / "src")
    # An installed package has its bytecode; a tree that may not write any would be compiled anew at each start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


class Millbeck(Node):
    """millbeck as one combined node."""

    name = "millbeck"

    def properties(self) -> dict[str, str]:
        return {"metrics.http.port": str(self.metrics_port)} | super().properties()

    def command(self) -> list[str]:
        return cli_command("server", "--config", str(self.config_path))

    def environment(self) -> dict[str, str]:
        return cli_environment()

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
