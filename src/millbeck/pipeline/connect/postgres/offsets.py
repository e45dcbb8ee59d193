"""The connector's offsets: Debezium's names, with what chunks and resumed snapshots need beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.postgres.assembly import HalfRead

JsonObject = Mapping[str, Any]
SNAPSHOT: Final = "millbeck.snapshot"
READ_AT: Final = "millbeck.read_at"


def is_snapshot_under_way(offset: JsonObject) -> bool:
    """Whether a snapshot began and did not end: ours, or one of Debezium's, which cannot be carried on."""
    if SNAPSHOT in offset:
        return True
    return bool(offset.get("snapshot")) and not (
        offset.get("snapshot_completed") or offset.get("last_snapshot_record") is True
    )


def snapshot_begun(lsn: int, time_us: int, tables: list[str]) -> dict[str, Any]:
    return {
        "lsn": lsn,
        "ts_usec": time_us,
        "snapshot": "INITIAL",
        "snapshot_completed": False,
        "last_snapshot_record": False,
        SNAPSHOT: {"lsn": lsn, "tables": tables},
    }


def snapshot_completed(lsn: int, time_us: int, read_at: JsonObject | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "lsn": lsn,
        "lsn_proc": lsn,
        "lsn_commit": lsn,
        "ts_usec": time_us,
        "snapshot": "INITIAL",
        "snapshot_completed": True,
        "last_snapshot_record": True,
    }
    if read_at is not None:
        made[READ_AT] = dict(read_at)
    return made


def resume_lsn(offset: JsonObject) -> int:
    """Where the stream goes on: behind the last transaction that is wholly in the log. Raises `ConfigError`."""
    for name in ("lsn_commit", "lsn_proc", "lsn"):
        value = offset.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    raise ConfigError("the connector's offset has neither lsn_commit nor lsn: alter it, or reset it")


def half_read(offset: JsonObject) -> HalfRead | None:
    """The transaction of which Debezium has written a part, or all but the news that it ended."""
    lsn, commit, transaction = offset.get("lsn"), offset.get("lsn_commit"), offset.get("txId")
    if not isinstance(lsn, int) or not isinstance(transaction, int) or lsn == commit or offset.get("snapshot"):
        return None
    return HalfRead(transaction_id=transaction, lsn=lsn, count=max(1, offset.get("lsn_events_processed", 1)))


def offset_problem(partition: JsonObject, offset: JsonObject | None) -> str | None:
    """What is wrong with an offset that an administrator sets."""
    if "server" not in partition:
        return "Partition objects should contain the key 'server'"
    if offset is None or "chunk" in partition:
        return None
    for name in ("lsn", "lsn_commit", "lsn_proc", "txId", "ts_usec"):
        value = offset.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            return f"The value for the '{name}' key in the offset should be a non-negative number"
    if not any(name in offset for name in ("lsn_commit", "lsn_proc", "lsn")):
        return "Offset objects should either be null or contain the key 'lsn'"
    return None
