"""A worker of a queue: each job is accepted, released for another try, or rejected."""

import sys

from millbeck.client.share import AcknowledgeType
from millbeck.client.sync import ShareConsumer


class Transient(Exception):
    """Another try may succeed."""


class Poison(Exception):
    """No try will ever succeed."""


def process_image(job, tries):
    if job.startswith(b"broken"):
        raise Poison
    if job.startswith(b"busy") and tries < 2:
        raise Transient
    print(job.decode())


def main(bootstrap="127.0.0.1:9092", quiet_seconds="10"):
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "image-processors",
        "share.acknowledgement.mode": "explicit",
    }
    with ShareConsumer(settings) as consumer:
        consumer.subscribe(["image-jobs"])
        while jobs := consumer.poll(timeout_s=float(quiet_seconds)):
            for job in jobs:
                try:
                    process_image(job.record.value, job.delivery_count)
                    consumer.acknowledge(job, AcknowledgeType.ACCEPT)
                except Transient:
                    consumer.acknowledge(job, AcknowledgeType.RELEASE)
                except Poison:
                    consumer.acknowledge(job, AcknowledgeType.REJECT)
            consumer.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
