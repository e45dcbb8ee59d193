"""Runs the interop suite: `python -m tests.interop [--system S] [--client C] [--allow-missing] [pytest arguments]`.

Peers that are not there yet are fetched first. A peer that cannot be had is named, and its tests fail, unless
--allow-missing says that they may be skipped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests.interop.clients import CLIENTS
from tools import peers


def _targets(pytest_arguments: list[str]) -> list[str]:
    """The whole suite, unless a file of it is named; a path behind an option such as --deselect is not a target."""
    before = ["", *pytest_arguments]
    named = [
        one
        for last, one in zip(before, pytest_arguments, strict=False)
        if one.startswith("tests/") and not last.startswith("--")
    ]
    return [] if named else ["tests/interop"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description="Real clients against a real node.")
    parser.add_argument("--system", default="millbeck", choices=["millbeck", "apache-kafka"], help="who is under test")
    parser.add_argument("--client", action="append", choices=list(CLIENTS), help="only these clients; may be repeated")
    parser.add_argument("--allow-missing", action="store_true", help="skip clients that cannot be installed")
    chosen, pytest_arguments = parser.parse_known_args()
    names = chosen.client or list(CLIENTS)
    wanted = {"kafka": None, "kafka-streams": None, "kafka-connect": None} | {
        peer: None for name in names for peer in CLIENTS[name].peer_names
    }
    for peer in wanted:
        try:
            peers.install(peer)
        except peers.PeerUnavailable as missing:
            print(f"interop: {missing}", file=sys.stderr)
    for name, found in peers.python_pins_that_differ().items():
        print(f"interop: {name} is {found}, peers.toml pins {peers.pins()['python'][name]}", file=sys.stderr)
    environment = os.environ | {
        "INTEROP_SYSTEM": chosen.system,
        "INTEROP_CLIENTS": ",".join(names),
        "INTEROP_ALLOW_MISSING": "1" if chosen.allow_missing else "0",
    }
    command = [sys.executable, "-m", "pytest", "--timeout=300", *_targets(pytest_arguments), *pytest_arguments]
    return subprocess.run(command, cwd=peers.ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
