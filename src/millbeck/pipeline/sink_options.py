"""The options of ``format("millbeck")`` as a sink, parsed and validated. Pure.

``topic``       the topic to write to; it overrides a column of that name, as in Spark's Kafka sink
``delivery``    ``at_least_once`` (the default: idempotent within a task, and what Spark repeats is written again) or
                ``exactly_once`` (every batch is one transaction, and a repeated batch is recognised)
``kafka.*``     settings of the producer, ``kafka.transactional.id`` among them for exactly_once
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.source_options import boolean, check_known, client_settings

AT_LEAST_ONCE: Final = "at_least_once"
EXACTLY_ONCE: Final = "exactly_once"

MANAGED_SETTINGS: Final = {
    "key.serializer": "the key column must be binary or string",
    "value.serializer": "the value column must be binary or string",
    "interceptor.classes": "there are no objects to deserialize",
}
TRANSACTION_TIMEOUT_MS: Final = 10 * 60_000
"""The brokers' default of ``transaction.max.timeout.ms``, 15 minutes."""
BATCH_BYTES: Final = 512 * 1024
"""Rows are collected into batches of this size; ``kafka.batch.size`` overrides it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    settings: Mapping[str, str]
    topic: str | None
    delivery: str
    transactional_id: str | None
    """The transactional id: the same for every run of a query, and different for other queries."""
    batch_bytes: int = BATCH_BYTES
    is_each_batch: bool = False
    """Whether one batch of a streaming query is written, by `each_batch`: then it is noted, too."""
    skipped: tuple[str, ...] = ()
    """Records that the query leaves out, for the note of the batch."""

    @property
    def is_exactly_once(self) -> bool:
        return self.delivery == EXACTLY_ONCE

    @property
    def transaction_settings(self) -> Mapping[str, str]:
        """The producer settings with a longer transaction timeout: a batch may take longer than the default of one
        minute.
        """
        return {"transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS), **self.settings}


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Parse the options of a sink. Raises `InvalidOption` naming the option."""
    options = {name.lower(): value for name, value in given.items()}
    check_known(given)
    delivery = options.get("delivery", AT_LEAST_ONCE).strip().lower()
    if delivery not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise InvalidOption(f"the option delivery must be {AT_LEAST_ONCE} or {EXACTLY_ONCE}, not {delivery!r}")
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise InvalidOption("the option topic is empty")
    settings = client_settings(options, MANAGED_SETTINGS, {"client.id": "millbeck-spark-sink"})
    named = settings.pop("transactional.id", None)
    if named is not None and delivery != EXACTLY_ONCE:
        raise InvalidOption(f"kafka.transactional.id is set: set delivery={EXACTLY_ONCE} too, or leave it out")
    batch_text = settings.pop("batch.size", str(BATCH_BYTES))
    if not batch_text.isdigit() or int(batch_text) < 1:
        raise InvalidOption(f"kafka.batch.size must be a number of bytes, not {batch_text!r}")
    return SinkOptions(
        settings=settings,
        topic=topic,
        delivery=delivery,
        transactional_id=_transactional_id(named, options) if delivery == EXACTLY_ONCE else None,
        batch_bytes=int(batch_text),
        is_each_batch=boolean(options, "eachBatch", default=False),
        skipped=tuple(options.get("skipped", "").split()),
    )


def _transactional_id(named: str | None, options: Mapping[str, str]) -> str:
    """The configured id, or one derived from the checkpoint location."""
    if named is not None:
        return named
    checkpoint = options.get("checkpointlocation")
    if checkpoint is None:
        raise InvalidOption(
            f"delivery={EXACTLY_ONCE} needs an id that stays the same after restarts: set kafka.transactional.id, or "
            "checkpointLocation as an option of the query"
        )
    return f"millbeck-{sha256(checkpoint.encode()).hexdigest()[:24]}"
