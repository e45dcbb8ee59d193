"""Settings of the producer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self, cast

from millbeck.client.config import CLIENT, MINUTE_MS, ClientConfig, Value
from millbeck.client.plugins import plugin
from millbeck.client.producer.partitioner import BY_NAME, DefaultPartitioner, Partitioner, ProducerLoad
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.kernel.options import BOOLEAN, INT, LIST, LONG, STRING, Importance, at_least, between, one_of, option

if TYPE_CHECKING:
    from millbeck.client.producer.record import ProducerInterceptor
    from millbeck.client.serialization import Serializer
    from millbeck.kernel.environment import Randomness

MIB: Final = 1024 * 1024
IN_FLIGHT_MAX_IDEMPOTENT: Final = 5
"""The number of batches per producer that a broker remembers to detect duplicates; it cannot recognise earlier ones."""

_ACKS: Final = {"all": -1, "-1": -1, "0": 0, "1": 1}


class ProducerConfig(ClientConfig):
    acks = option(
        "acks",
        STRING,
        "all",
        valid=one_of(*_ACKS),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="The required acknowledgements. all: of all in-sync replicas; 1: of the leader only; 0: none.",
    )
    batch_size = option(
        "batch.size",
        INT,
        16_384,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum size of batches in bytes; a larger record is sent alone in a batch.",
    )
    linger_ms = option(
        "linger.ms",
        LONG,
        5,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum time that an incomplete batch waits for more records.",
    )
    metadata_max_idle_ms = option(
        "metadata.max.idle.ms",
        LONG,
        5 * MINUTE_MS,
        valid=at_least(5_000),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="The metadata of a topic is refreshed until nothing was sent to it for this long; the next record asks for "
        "it again.",
    )
    compression_type = option(
        "compression.type",
        STRING,
        "none",
        valid=one_of("none", "gzip", "snappy", "lz4", "zstd"),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="Compression codec: none, gzip, snappy, lz4 or zstd.",
    )
    compression_gzip_level = option(
        "compression.gzip.level",
        INT,
        -1,
        valid=between(-1, 9),
        scope=CLIENT,
        doc="The gzip compression level, from 1 (fast) to 9 (small); -1 means 6.",
    )
    compression_lz4_level = option(
        "compression.lz4.level",
        INT,
        9,
        valid=between(1, 17),
        scope=CLIENT,
        doc="The lz4 compression level, from 1 (fast) to 17 (small).",
    )
    compression_zstd_level = option(
        "compression.zstd.level",
        INT,
        3,
        valid=between(-131072, 22),
        scope=CLIENT,
        doc="The zstd compression level, from -131072 (fast) to 22 (small).",
    )
    max_request_size = option(
        "max.request.size",
        INT,
        1 * MIB,
        valid=at_least(0),
        scope=CLIENT,
        doc="Maximum size of a record and of a request; the broker's message.max.bytes applies too.",
    )
    buffer_memory = option(
        "buffer.memory",
        LONG,
        32 * MIB,
        valid=at_least(0),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="Memory for unsent records in bytes; send() waits when it is full.",
    )
    max_block_ms = option(
        "max.block.ms",
        LONG,
        MINUTE_MS,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum time that send() waits for metadata and for buffer memory.",
    )
    delivery_timeout_ms = option(
        "delivery.timeout.ms",
        INT,
        2 * MINUTE_MS,
        valid=at_least(0),
        scope=CLIENT,
        doc="The time limit for delivering a record, retries included: a record that is not acknowledged this "
        "long after send() fails.",
    )
    max_in_flight = option(
        "max.in.flight.requests.per.connection",
        INT,
        5,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Maximum number of unanswered requests per broker.",
    )
    enable_idempotence = option(
        "enable.idempotence",
        BOOLEAN,
        True,
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Whether brokers detect duplicate batches, so that a retry neither duplicates nor reorders records.",
    )
    partitioner_ignore_keys = option(
        "partitioner.ignore.keys",
        BOOLEAN,
        False,
        scope=CLIENT,
        doc="Whether keys are ignored when a partition is chosen.",
    )
    partitioner_class = option(
        "partitioner.class",
        STRING,
        None,
        scope=CLIENT,
        doc="The partitioner. By default records with a key are placed by its hash, and others stick to a "
        "partition until a batch is full. roundrobin or the name of Kafka's RoundRobinPartitioner; an entry "
        "point in the group "
        "millbeck.partitioners, or module:class.",
    )
    partitioner_adaptive = option(
        "partitioner.adaptive.partitioning.enable",
        BOOLEAN,
        True,
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Whether records without a key are sent less often to partitions with a long queue of batches.",
    )
    partitioner_availability_timeout_ms = option(
        "partitioner.availability.timeout.ms",
        LONG,
        0,
        valid=at_least(0),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Records without a key are not sent to partitions of a broker that has accepted nothing "
        "for this long; 0 disables this.",
    )
    key_serializer = option(
        "key.serializer",
        STRING,
        None,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The serializer of keys: bytes, str, int or json, the name of one of Kafka's serializers "
        "for these types, an entry point in the group millbeck.serializers, or module:class.",
    )
    value_serializer = option(
        "value.serializer",
        STRING,
        None,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The serializer of values; see key.serializer.",
    )
    interceptor_classes = option(
        "interceptor.classes",
        LIST,
        (),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Interceptors, which get each record before it is sent, and its result: entry points in "
        "the group millbeck.interceptors, or module:class.",
    )

    transactional_id = option(
        "transactional.id",
        STRING,
        None,
        scope=CLIENT,
        importance=Importance.LOW,
        doc="The transactional id, which enables transactions. A new producer with the same id fences the older one.",
    )
    transaction_timeout_ms = option(
        "transaction.timeout.ms",
        INT,
        MINUTE_MS,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="The maximum duration of a transaction; the coordinator aborts one that is open for longer.",
    )
    two_phase_commit = option(
        "transaction.two.phase.commit.enable",
        BOOLEAN,
        False,
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Whether an external transaction manager decides on transactions (KIP-939): they are "
        "prepared first, and never time out.",
    )

    def serializer(self, name: str) -> Serializer[Any] | None:
        """The serializer of ``key.serializer`` or ``value.serializer``; None for bytes."""
        from millbeck.client.serialization import serde_named

        named = self.key_serializer if name == "key.serializer" else self.value_serializer
        return None if named is None else cast("Serializer[Any]", serde_named(name, named, "Serializer"))

    def interceptors(self) -> list[ProducerInterceptor]:
        return [plugin("interceptor.classes", name, "millbeck.interceptors")() for name in self.interceptor_classes]

    def partitioner(self, randomness: Randomness, load: ProducerLoad) -> Partitioner:
        name = self.partitioner_class
        if name is not None:
            known = BY_NAME.get(full_name(name, BY_NAME))
            return cast("Partitioner", (known or plugin("partitioner.class", name, "millbeck.partitioners"))())
        return DefaultPartitioner(
            randomness,
            batch_size=max(self.batch_size, 1),
            ignores_keys=self.partitioner_ignore_keys,
            load=load if self.partitioner_adaptive else None,
        )

    @property
    def required_acks(self) -> int:
        """The acks field of a Produce request."""
        return _ACKS[self.acks]

    @property
    def compression_level(self) -> int | None:
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    @classmethod
    def parse(cls, settings: Mapping[str, Value]) -> Self:
        return super().parse(settings)._reconciled(settings)

    def _reconciled(self, settings: Mapping[str, Value]) -> Self:
        """Adjust unset defaults to the explicit settings; raises if two explicit settings conflict."""
        reconciled = self
        conflict = self._conflict_with_idempotence()
        if self.transactional_id is not None and (conflict or not self.enable_idempotence):
            raise InvalidConfig(f"transactional.id needs {conflict or 'enable.idempotence=true'}")
        if self.enable_idempotence and conflict:
            if "enable.idempotence" in settings:
                raise InvalidConfig(f"enable.idempotence=true needs {conflict}")
            reconciled = reconciled.replace(enable_idempotence=False)
        if self.two_phase_commit and "transaction.timeout.ms" in settings:
            raise InvalidConfig(
                "transaction.timeout.ms cannot be set with transaction.two.phase.commit.enable: transactions do not "
                "expire then"
            )
        if self.two_phase_commit and self.transactional_id is None:
            raise InvalidConfig("transaction.two.phase.commit.enable needs transactional.id")
        needed_ms = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms < needed_ms:
            if "delivery.timeout.ms" in settings:
                raise InvalidConfig(
                    f"delivery.timeout.ms is {self.delivery_timeout_ms}, less than linger.ms and request.timeout.ms "
                    f"together ({needed_ms})"
                )
            reconciled = reconciled.replace(delivery_timeout_ms=needed_ms)
        return reconciled

    def _conflict_with_idempotence(self) -> str:
        if self.required_acks != -1:
            return "acks=all"
        if self.retries == 0:
            return "retries above 0"
        if self.max_in_flight > IN_FLIGHT_MAX_IDEMPOTENT:
            return f"max.in.flight.requests.per.connection of at most {IN_FLIGHT_MAX_IDEMPOTENT}"
        return ""
