from __future__ import annotations

from typing import Any

from millbeck.storage.log_environment import LogEnvironment, LogHome


def test_a_log_directory_is_the_home_of_its_logs(world: Any) -> None:
    environment: LogEnvironment = world.log.environment
    home: LogHome = world.directory
    assert environment.home is home
    assert environment.files is world.files


def test_logs_of_a_directory_share_files_and_memory(world: Any) -> None:
    key = world.log.topic_partition._replace(partition=1)
    other = world.directory.create_log(key, bytes(16), world.config, now_ms=0)
    assert other.environment is world.log.environment
