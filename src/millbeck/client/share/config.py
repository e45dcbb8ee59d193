"""Settings of a share consumer, under Kafka's names."""

from __future__ import annotations

from typing import Final

from millbeck.client.config import ClientConfig
from millbeck.kernel.options import BOOLEAN, INT, STRING, Importance, Scope, at_least, one_of, option
from millbeck.kernel.units import MIB

CLIENT: Final = Scope.CLIENT


class ShareConsumerConfig(ClientConfig):
    group_id = option(
        "group.id", STRING, None, scope=CLIENT, importance=Importance.HIGH, doc="The share group this consumer is in."
    )
    acknowledgement_mode = option(
        "share.acknowledgement.mode",
        STRING,
        "implicit",
        valid=one_of("implicit", "explicit"),
        scope=CLIENT,
        doc="With implicit, the next poll accepts what the one before returned; with explicit, the program says it of "
        "each record.",
    )
    acquire_mode = option(
        "share.acquire.mode",
        STRING,
        "batch_optimized",
        valid=one_of("batch_optimized", "record_limit"),
        scope=CLIENT,
        doc="With record_limit a fetch never brings more than max.poll.records; otherwise whole batches.",
    )
    max_poll_records = option(
        "max.poll.records", INT, 500, valid=at_least(1), scope=CLIENT, doc="Most records a fetch asks for."
    )
    fetch_min_bytes = option(
        "fetch.min.bytes",
        INT,
        1,
        valid=at_least(0),
        scope=CLIENT,
        doc="A broker answers a fetch when it has this much.",
    )
    fetch_max_bytes = option(
        "fetch.max.bytes", INT, 50 * MIB, valid=at_least(1), scope=CLIENT, doc="Most bytes one fetch returns."
    )
    fetch_max_wait_ms = option(
        "fetch.max.wait.ms",
        INT,
        500,
        valid=at_least(0),
        scope=CLIENT,
        doc="A broker answers a fetch after this time at the latest.",
    )
    check_crcs = option(
        "check.crcs", BOOLEAN, True, scope=CLIENT, importance=Importance.LOW, doc="Verify checksums of what arrives."
    )

    @property
    def is_explicit(self) -> bool:
        return self.acknowledgement_mode == "explicit"
