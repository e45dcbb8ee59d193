"""A producer with the settings of production: nothing is lost, and nothing is written twice."""

import sys

from millbeck.client.sync import Producer

SETTINGS = {
    "acks": "all",
    "enable.idempotence": True,
    "max.in.flight.requests.per.connection": 5,
    "delivery.timeout.ms": 120_000,
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 65_536,
    "buffer.memory": 64 * 1024 * 1024,
}


def main(bootstrap="127.0.0.1:9092", count="10"):
    with Producer({**SETTINGS, "bootstrap.servers": bootstrap}) as producer:
        deliveries = []
        for number in range(int(count)):
            # The key decides on the partition, and within it records keep their order.
            order = f"order-{number}"
            deliveries.append((order, producer.send_nowait("orders", f"{number} apples".encode(), key=order.encode())))
        for order, delivery in deliveries:
            stored = delivery.result(120)
            print(f"{order} is at offset {stored.offset} of partition {stored.partition}")


if __name__ == "__main__":
    main(*sys.argv[1:])
