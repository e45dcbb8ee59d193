from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.host import real_environment
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.server.config import NodeConfig
from millbeck.server.local.embedded import embedded_settings
from millbeck.server.local.formatting import format_directories
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache

SEGMENT = "orders-0/00000000000000000004.log"


def open_directory(path: Path) -> LogDirectory:
    return LogDirectory(
        real_environment().files,
        str(path),
        cache=FileCache(real_environment().files, 100),
        index_cache=IndexCache(),
        jitter_below=lambda _: 0,
        on_failure=lambda reason: None,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a stopped node; the sixth batch of orders-0 is damaged."""
    path = tmp_path / "data"
    config = NodeConfig(embedded_settings(str(path), host="127.0.0.1", port=0, metrics_port=0))
    format_directories(real_environment(), config)
    batch = batches.build([Record(-1, 0, None, b"x" * 40)])
    settings = LogConfig.of(internal_segment_bytes=str(4 * len(batch)))
    directory = open_directory(path)
    for topic in ("orders", "payments"):
        log = directory.create_log(TopicPartition(topic, 0), bytes(range(16)), settings, now_ms=0)
        for _ in range(12):
            log.stage(batch, leader_epoch=1, now_ms=0)
            log.write_staged()
        log.flush()
    assert directory.close()
    with (path / SEGMENT).open("r+b") as file:
        file.seek(len(batch) + 70)
        file.write(b"\xee" * 8)
    return path


def test_what_goes_is_printed_before_anybody_says_yes(run: Callable[..., Result], data: Path) -> None:
    size = (data / SEGMENT).stat().st_size
    done = run("log", "repair", str(data / "orders-0"), stdin="n\n")
    assert done.exit_code == 0
    assert f"orders-0: {data / SEGMENT} is damaged at position {size // 4}: " in done.stdout
    assert f"removed: offsets 5 to 11, 7 records, {7 * size // 4} bytes" in done.stdout
    assert "00000000000000000008.log\n" in done.stdout
    assert "stays: offsets 0 to 4" in done.stdout
    assert "orders-0: left unchanged" in done.stdout
    assert (data / SEGMENT).stat().st_size == size
    assert (data / ".kafka_cleanshutdown").exists()


def test_a_log_is_cut_and_its_bytes_are_kept(run: Callable[..., Result], data: Path) -> None:
    done = run("log", "repair", str(data / "orders-0"), stdin="y\n")
    assert done.exit_code == 0
    assert "orders-0: truncated, it ends at offset 5; removed part in " in done.stdout
    assert (data / "orders-0/00000000000000000005.log.cut").exists()
    shown = run("dump-log", str(data / "orders-0/00000000000000000008.log.cut"))
    assert shown.exit_code == 0
    assert shown.stdout.count("baseOffset: ") == 4
    assert run("log", "repair", str(data / "orders-0")).stdout == "orders-0: not damaged\n"
    directory = open_directory(data)
    log = directory.open_log(TopicPartition("orders", 0), bytes(range(16)), LogConfig.of(), now_ms=0)
    assert (log.end_offset, log.is_offline) == (5, False)


def test_a_log_directory_stands_for_all_its_partitions(run: Callable[..., Result], data: Path) -> None:
    done = run("log", "repair", str(data), "--yes")
    assert done.exit_code == 0
    assert "orders-0: truncated, it ends at offset 5" in done.stdout
    assert "payments-0: not damaged\n" in done.stdout


def test_a_directory_in_use_is_left_alone(fails: Callable[..., str], data: Path) -> None:
    lock = real_environment().files.lock(f"{data}/.lock")
    assert "in use by a running node: stop it first" in fails("log", "repair", str(data / "orders-0"), "--yes")
    lock.release()


@pytest.mark.parametrize("name", ["", "__cluster_metadata-0"])
def test_other_directories_are_refused(fails: Callable[..., str], data: Path, tmp_path: Path, name: str) -> None:
    path = data / name if name else tmp_path
    path.mkdir(exist_ok=True)
    assert ("which is not truncated" if name else "neither a log directory nor") in fails("log", "repair", str(path))


def test_without_an_answer_nothing_is_cut(run: Callable[..., Result], data: Path) -> None:
    size = (data / SEGMENT).stat().st_size
    assert run("log", "repair", str(data / "orders-0")).exit_code != 0
    assert (data / SEGMENT).stat().st_size == size
