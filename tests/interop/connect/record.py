"""Ask Kafka's own classes, and compare with what was recorded before.

    python -m tests.interop.connect.record            compare
    python -m tests.interop.connect.record --write    record anew what the unit tests read

Fails when Kafka's artifacts are not there; `python -m tools.peers install kafka-connect` fetches them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.interop.connect.cases import all_cases
from tools import peers

RECORDED = Path(__file__).resolve().parents[2] / "unit" / "pipeline" / "connect" / "kafka_answers.txt"


def answers() -> list[str]:
    """A line for each question: the question and Kafka's answer, as JSON."""
    questions = [json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in all_cases()]
    command = [
        *("java", "-Duser.timezone=UTC", "-Duser.language=en", "-Duser.country=US"),
        *("-cp", f"{peers.peer_path('kafka-connect')}/*", str(Path(__file__).with_name("ConnectOracle.java"))),
    ]
    done = subprocess.run(command, input="\n".join(questions) + "\n", capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"the oracle failed:\n{done.stderr}")
    found = done.stdout.splitlines()
    assert len(found) == len(questions), f"{len(found)} answers to {len(questions)} questions:\n{done.stderr[-2000:]}"
    return [f"{question}\t{answer}" for question, answer in zip(questions, found, strict=True)]


def main() -> int:
    found = answers()
    if "--write" in sys.argv[1:]:
        RECORDED.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    different = [line for line, before in zip(found, recorded, strict=True) if line != before]
    for line in different:
        print(line)
    print(f"{len(found)} answers of Kafka {peers.pins()['kafka']['version']}, {len(different)} different from recorded")
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
