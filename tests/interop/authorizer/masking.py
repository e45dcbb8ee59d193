"""What is compared of an answer: everything but ids, addresses, times, and what else two systems cannot agree on."""

from __future__ import annotations

from typing import Any

from millbeck.wire.schema import schema_of

MASKED = frozenset(
    {
        "assignment_epoch",
        "client_host",
        "end_offset",
        "expiry_timestamp_ms",
        "cluster_id",
        "group_epoch",
        "heartbeat_interval_ms",
        "high_watermark",
        "host",
        "issue_timestamp_ms",
        "last_stable_offset",
        "log_append_time_ms",
        "max_timestamp_ms",
        "member_epoch",
        "member_id",
        "offset",
        "port",
        "producer_epoch",
        "producer_id",
        "session_id",
        "throttle_time_ms",
        "timestamp",
        "token_id",
        "topic_id",
        "total_bytes",
        "usable_bytes",
    }
)
"""Fields of which only is compared whether they are set."""
SUMMED_UP = frozenset(
    {
        "aborted_transactions",
        "brokers",
        "config_resources",
        "configs",
        "current_voters",
        "log_dir",
        "nodes",
        "records",
    }
)
"""Fields of which only is compared whether they are empty: what is in them is compared elsewhere."""
_UNSET: tuple[Any, ...] = (None, 0, -1, "", b"", bytes(16))


def masked(value: Any, own: str) -> Any:
    """A response as plain values. Entries named otherwise than ``own`` are left out of lists of everything there is."""
    if isinstance(value, list):
        return sorted((masked(each, own) for each in value if _is_own(each, own)), key=repr)
    if isinstance(value, bytes):
        return "set" if value not in _UNSET else "unset"
    if not hasattr(type(value), "__slots__") or isinstance(value, (int, str)) or value is None:
        return value
    found = {}
    for field in schema_of(type(value)).fields:
        each = getattr(value, field.name)
        if field.name in MASKED:
            each = "unset" if each in _UNSET else "set"
        elif field.name in SUMMED_UP:
            each = "some" if each else "none"
        else:
            each = masked(each, own)
        found[field.name] = each
    return found


def _is_own(entry: Any, own: str) -> bool:
    for name in ("group_id", "transactional_id", "name", "resource_name"):
        text = getattr(entry, name, None)
        if isinstance(text, str) and text.startswith(("user-", "__share", "__transaction")):
            return text.startswith(own)
    return True
