"""The page for those who come from Kafka Streams has every setting of Kafka Streams."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tools import peers

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).parent / "java" / "StreamsSettings.java"


def test_every_setting_is_on_the_page() -> None:
    command = ["java", "-cp", f"{peers.peer_path('kafka-streams')}/*", str(PROGRAM)]
    names = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert len(names) >= 70
    told = re.findall(r"`([a-z][a-z0-9._*]+)`", (ROOT / "docs/kafka-streams.md").read_text())
    patterns = [re.compile(re.escape(name).replace(r"\*", r"[a-z._]+")) for name in told]
    assert [name for name in names if not any(pattern.fullmatch(name) for pattern in patterns)] == []
