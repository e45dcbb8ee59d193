"""A consumer of a group that commits by itself, when an order has been processed; it ends after ten quiet seconds."""

import sys

from millbeck.client.sync import Consumer

SETTINGS = {
    "group.id": "order-processor",
    "group.protocol": "consumer",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "max.poll.records": 500,
    "max.poll.interval.ms": 300_000,
    "fetch.min.bytes": 1_048_576,
    "fetch.max.wait.ms": 500,
    "client.rack": "us-east-1a",
}


def process_order(order):
    print(order.decode())


def main(bootstrap="127.0.0.1:9092", quiet_seconds="10"):
    with Consumer({**SETTINGS, "bootstrap.servers": bootstrap}) as consumer:
        consumer.subscribe(["orders"])
        while found := consumer.poll(timeout_s=float(quiet_seconds)):
            for records in found.values():
                for record in records:
                    # An exception ends the loop before the commit: the order is delivered again.
                    process_order(record.value)
            consumer.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
