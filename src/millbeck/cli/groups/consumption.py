"""``millbeck consume --share``: print records of a share group and accept each once printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from millbeck.cli.connection_options import Target, check_reachable
from millbeck.cli.output import check_reader

if TYPE_CHECKING:
    from millbeck.cli.records.record_format import RecordPrinter
    from millbeck.kernel.environment import Environment

POLL_SECONDS: Final = 0.5


async def print_shared(
    environment: Environment,
    settings: dict[str, str],
    target: Target,
    *,
    topics: tuple[str, ...],
    count_max: int | None,
    idle_ms_max: int | None,
    print_record: RecordPrinter,
) -> int:
    """Print until a limit is reached; returns the record count. Records acquired but not printed are released."""
    import asyncio

    from millbeck.client.share import AcknowledgeType, ShareConsumer

    loop = asyncio.get_running_loop()
    count = 0
    last_s = loop.time()
    async with ShareConsumer(settings, environment=environment) as consumer:
        await check_reachable(consumer.cluster, target)
        consumer.subscribe(topics)
        while count_max is None or count < count_max:
            idle_s = None if idle_ms_max is None else last_s + idle_ms_max / 1000 - loop.time()
            if idle_s is not None and idle_s <= 0:
                break
            deliveries = await consumer.poll(timeout_s=POLL_SECONDS if idle_s is None else min(POLL_SECONDS, idle_s))
            for delivery in deliveries:
                if count_max is not None and count >= count_max:
                    consumer.acknowledge(delivery, AcknowledgeType.RELEASE)
                    continue
                sys.stdout.buffer.write(print_record(delivery.partition, delivery.record))
                consumer.acknowledge(delivery)
                count += 1
            if deliveries:
                last_s = loop.time()
                sys.stdout.buffer.flush()
                await consumer.commit()
            else:
                check_reader()
    return count
