"""The four clients for synchronous programs: scripts, notebooks, WSGI workers, Spark tasks.

    from millbeck.client.sync import Producer

    with Producer({"bootstrap.servers": "127.0.0.1:9092"}) as producer:
        producer.send("orders", b"value", key=b"key")             # acknowledged
        delivery = producer.send_nowait("orders", b"value")       # at once; delivery.result() waits

The names are those of `millbeck.client`; methods that are coroutines there are blocking here. Each client runs in an
event loop on a background thread, so heartbeats are sent while the program works, and a client may be used from several
threads. The rebalance callbacks of a consumer run in the thread that polls.
"""

from millbeck.client.sync.admin import Admin
from millbeck.client.sync.consumer import Consumer
from millbeck.client.sync.producer import Producer
from millbeck.client.sync.share import ShareConsumer

__all__ = ["Admin", "Consumer", "Producer", "ShareConsumer"]
