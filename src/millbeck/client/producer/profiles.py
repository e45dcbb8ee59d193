"""Profiles: sets of producer settings for a purpose.

    producer = Producer({"bootstrap.servers": "127.0.0.1:9092"}, profile="throughput", linger_ms=20)
    print(producer.profile.explain())

A profile only sets what the program does not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from millbeck.client.config import Value
from millbeck.client.producer.config import ProducerConfig
from millbeck.kernel.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    name: str
    purpose: str
    settings: Mapping[str, tuple[str, str]]
    """The value and the reason of each setting."""
    overridden: Mapping[str, str]
    """The settings of the profile that the program has overridden, with the program's values."""

    def explain(self) -> str:
        """A table with one line per setting: the profile's value, Kafka's default and the reason."""
        defaults = {option.name: option.default for option in ProducerConfig.options}
        rows = [("setting", "value", "default", "why")]
        for name, (value, reason) in self.settings.items():
            own = self.overridden.get(name)
            shown = value if own is None else f"{own} (profile: {value})"
            rows.append((name, shown, str(defaults[name]).lower(), reason))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows]
        return "\n".join([f"{self.name}: {self.purpose}", *lines])


_PROFILES: Final[dict[str, tuple[str, dict[str, tuple[str, str]]]]] = {
    "low-latency": (
        "each record leaves at once; a leader that fails may lose what it has just acknowledged",
        {
            "linger.ms": ("0", "a record does not wait for further records"),
            "batch.size": ("16384", "records that arrive during a request are sent together"),
            "acks": ("1", "the leader answers without waiting for its followers"),
            "compression.type": ("none", "no time is spent on compressing"),
        },
    ),
    "throughput": (
        "few large requests; a record may wait for a tenth of a second",
        {
            "linger.ms": ("100", "batches have time to fill"),
            "batch.size": ("1048576", "a request carries up to a megabyte per partition"),
            "acks": ("all", "all in-sync replicas have the record"),
            "compression.type": ("lz4", "large batches compress well, and lz4 costs little"),
        },
    ),
    "durable": (
        "an acknowledged record survives every failure but that of all in-sync replicas; set min.insync.replicas=2 too",
        {
            "acks": ("all", "all in-sync replicas have the record"),
            "enable.idempotence": ("true", "a retry neither duplicates nor reorders records"),
            "max.in.flight.requests.per.connection": ("5", "the maximum for which brokers keep the order"),
            "retries": ("2147483647", "only the delivery timeout ends the retries"),
            "delivery.timeout.ms": ("300000", "long enough for an election and a restart"),
        },
    ),
}


def profiled(name: str, settings: Mapping[str, Value]) -> tuple[dict[str, Value], Profile]:
    """The settings, with the profile's values for those that are not set; raises `InvalidConfig`."""
    if name not in _PROFILES:
        raise InvalidConfig(f"profile: {name[:100]} does not exist; the profiles are {', '.join(_PROFILES)}")
    purpose, chosen = _PROFILES[name]
    overridden = {key: str(settings[key]) for key in chosen if settings.get(key) is not None}
    together: dict[str, Value] = {key: value for key, (value, _) in chosen.items()}
    together.update({key: value for key, value in settings.items() if value is not None})
    return together, Profile(name=name, purpose=purpose, settings=chosen, overridden=overridden)
