"""Rebuild the balances from offset 0, and compare them with what the pipeline has written."""

import json
import sys

from millbeck.client import TopicPartition
from millbeck.client.sync import Admin, Consumer


def records(bootstrap, topic):
    """All records of a topic, from its first offset to its end."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        described = admin.describe_topics([topic])[topic]
    partitions = [TopicPartition(topic, each.partition) for each in described.partitions]
    settings = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    with Consumer(settings) as consumer:
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for found in consumer.poll().values():
                yield from found


def rebuilt(bootstrap):
    balances = {}
    for record in records(bootstrap, "movements"):
        balances[record.key] = balances.get(record.key, 0) + json.loads(record.value)["cents"]
    return balances


def main(bootstrap="127.0.0.1:9092"):
    balances = rebuilt(bootstrap)
    written = {record.key: json.loads(record.value)["cents"] for record in records(bootstrap, "balances")}
    for account, cents in sorted(balances.items()):
        print(account.decode(), cents, "as written" if written.get(account) == cents else "was written otherwise")
    return 0 if written == balances else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
