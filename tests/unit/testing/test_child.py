from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from millbeck.testing.child import BrokerProcessConfig


def order_of(directory: Path, **changes: object) -> BrokerProcessConfig:
    fields: dict[str, object] = {
        "directory": str(directory),
        "is_temporary": False,
        "parent": os.getpid(),
        "port": 0,
        "metrics_port": 0,
        "settings": {},
    }
    return BrokerProcessConfig(**(fields | changes))  # type: ignore[arg-type]


def test_an_order_s_settings_win_over_the_embedded_ones(tmp_path: Path) -> None:
    config = order_of(tmp_path, port=7, settings={"num.partitions": "5"}).config()
    assert config.topic_defaults.num_partitions == 5
    assert config.directories == (str(tmp_path),)
    assert config.client_addresses()[0].port == 7


def run_child(tmp_path: Path, **changes: object) -> subprocess.CompletedProcess[str]:
    order = order_of(tmp_path, **changes)
    text = json.dumps({name: getattr(order, name) for name in BrokerProcessConfig.__slots__})
    program = "from millbeck.testing.child import main; main()"
    return subprocess.run([sys.executable, "-c", program, text], input="", capture_output=True, text=True, timeout=60)


def test_it_says_where_it_listens_and_ends_with_its_input(tmp_path: Path) -> None:
    """Standard input is at its end from the start: the node comes up, says so, and goes."""
    done = run_child(tmp_path / "logs", is_temporary=True)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout)) == ["metrics_port", "port"]
    assert not (tmp_path / "logs").exists()


def test_a_directory_that_is_not_temporary_stays(tmp_path: Path) -> None:
    done = run_child(tmp_path / "logs")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").is_file()


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    done = run_child(tmp_path, settings={"listeners": "nonsense"})
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.strip() == "InvalidConfig: listeners: 'nonsense' is not NAME://host:port"
