"""The demo's stream of orders, on a real node."""

from __future__ import annotations

import time

from millbeck.cli.demo.order_stream import OrderStream
from millbeck.cli.demo.session import TOPIC_SETTINGS
from millbeck.cli.demo.topic_reader import TopicReader
from millbeck.client.blocking import Blocking
from millbeck.pipeline.demo.orders import CUSTOMER_COUNT, CUSTOMERS, ORDERS, SPEED, TOPICS
from millbeck.testing import broker
from millbeck.testing.topics import create_topic

SECONDS_MAX = 20


def test_everything_it_counts_is_in_the_log() -> None:
    begin_ms = int((time.time() - 86_400) * 1000)
    with broker() as node, Blocking() as blocking:
        for name, count in TOPICS.items():
            # Event time outruns the clock.
            create_topic(node.bootstrap, name, partitions=count, configs=TOPIC_SETTINGS)
        stream = OrderStream(node.bootstrap, begin_ms=begin_ms, per_second=30)
        stream.start()
        ends_s = time.monotonic() + SECONDS_MAX
        while stream.record_count < 60 and time.monotonic() < ends_s:
            time.sleep(0.05)
        stream.stop()
        assert stream.error is None
        reader = TopicReader(blocking, node.bootstrap, ORDERS)
        assert len(reader.read()) == stream.record_count >= 60
        assert reader.read() == []
        assert len(TopicReader(blocking, node.bootstrap, CUSTOMERS).read()) == CUSTOMER_COUNT
        assert stream.written_ms == begin_ms + stream.record_count // 30 * SPEED * 1000


def test_a_node_that_is_gone_is_reported() -> None:
    with broker() as node:
        stream = OrderStream(node.bootstrap, begin_ms=int(time.time() * 1000) + 10 * 86_400_000, per_second=5)
        stream.start()
        ends_s = time.monotonic() + SECONDS_MAX
        while stream.error is None and time.monotonic() < ends_s:
            time.sleep(0.05)
        stream.stop()
    assert stream.error is not None
