"""Settings of the share consumer, under Kafka's names."""

from __future__ import annotations

from typing import Final

from millbeck.client.consumer.decoding_config import DecodingConfig
from millbeck.kernel.options import BOOLEAN, INT, STRING, Importance, Scope, at_least, one_of, option
from millbeck.kernel.units import MIB

CLIENT: Final = Scope.CLIENT


class ShareConsumerConfig(DecodingConfig):
    group_id = option(
        "group.id", STRING, None, scope=CLIENT, importance=Importance.HIGH, doc="The share group this consumer joins."
    )
    acknowledgement_mode = option(
        "share.acknowledgement.mode",
        STRING,
        "implicit",
        valid=one_of("implicit", "explicit"),
        scope=CLIENT,
        doc="implicit: the next poll accepts the records of the previous one; explicit: the program acknowledges each "
        "record.",
    )
    acquire_mode = option(
        "share.acquire.mode",
        STRING,
        "batch_optimized",
        valid=one_of("batch_optimized", "record_limit"),
        scope=CLIENT,
        doc="record_limit: a fetch acquires at most max.poll.records; batch_optimized: whole batches.",
    )
    max_poll_records = option(
        "max.poll.records", INT, 500, valid=at_least(1), scope=CLIENT, doc="Maximum number of records per fetch."
    )
    fetch_min_bytes = option(
        "fetch.min.bytes",
        INT,
        1,
        valid=at_least(0),
        scope=CLIENT,
        doc="The minimum number of bytes of a fetch response; the broker waits for them, for at most "
        "fetch.max.wait.ms.",
    )
    fetch_max_bytes = option(
        "fetch.max.bytes", INT, 50 * MIB, valid=at_least(1), scope=CLIENT, doc="Maximum number of bytes per fetch."
    )
    fetch_max_wait_ms = option(
        "fetch.max.wait.ms",
        INT,
        500,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum time that a broker delays a fetch response.",
    )
    check_crcs = option(
        "check.crcs",
        BOOLEAN,
        True,
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Whether the checksums of fetched batches are verified.",
    )

    @property
    def is_explicit(self) -> bool:
        return self.acknowledgement_mode == "explicit"
