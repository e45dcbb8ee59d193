"""Consume, process, produce: every order becomes one enriched order, exactly once, even when this is killed."""

import asyncio
import sys

from millbeck.client import Consumer, Producer
from millbeck.kernel.errors import ApiError, ProducerFenced


def enrich(order):
    return order + b", enriched"


async def run(bootstrap="127.0.0.1:9092", quiet_seconds="10"):
    reading = {
        "bootstrap.servers": bootstrap,
        "group.id": "order-enricher",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    # The id is the same after a restart, and no other instance has it.
    writing = {
        "bootstrap.servers": bootstrap,
        "transactional.id": "order-enricher-instance-1",
        "transaction.timeout.ms": 60_000,
    }
    async with Producer(writing) as producer, Consumer(reading) as consumer:
        consumer.subscribe(["orders"])
        while found := await consumer.poll(timeout_s=float(quiet_seconds)):
            try:
                async with producer.transaction() as transaction:
                    for records in found.values():
                        for record in records:
                            transaction.send_nowait("enriched-orders", enrich(record.value), key=record.key)
                    # The offsets are part of the transaction, so they are committed with the records or not at all.
                    await transaction.send_offsets(consumer)
            except ProducerFenced:
                raise  # Another instance has taken over.
            except ApiError as error:
                print(f"the transaction was aborted, its orders are read again: {error}")
                for partition, records in found.items():
                    consumer.seek(partition, records[0].offset)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
