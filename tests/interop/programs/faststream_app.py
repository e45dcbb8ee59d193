"""A FastStream program: it handles a message, publishes the answer, reads a batch, and prints what it has seen.

Run with the bootstrap servers and the directory FastStream is installed in. ``install`` comes first, so FastStream,
which is unchanged, uses millbeck's clients.
"""

import asyncio
import json
import sys

from millbeck.client.compat import aiokafka as compat

compat.install()
sys.path.insert(0, sys.argv[2])

from faststream import FastStream  # noqa: E402
from faststream.kafka import KafkaBroker  # noqa: E402

kafka = KafkaBroker(sys.argv[1])
app = FastStream(kafka)
seen: list[object] = []


@kafka.subscriber("users", group_id="registration", auto_offset_reset="earliest")
@kafka.publisher("registrations")
async def register(user: str, user_id: int) -> str:
    return f"{user} is number {user_id}"


@kafka.subscriber("registrations", auto_offset_reset="earliest")
async def registered(text: str) -> None:
    seen.append(text)


@kafka.subscriber("lines", batch=True, group_id="lines", auto_offset_reset="earliest")
async def lines(texts: list[str]) -> None:
    seen.append(texts)


@app.after_startup
async def publish() -> None:
    await kafka.publish({"user": "Ada", "user_id": 1}, topic="users")
    await kafka.publish_batch("a", "b", topic="lines")
    async with asyncio.timeout(30):
        while len(seen) < 2:
            await asyncio.sleep(0.05)
    app.exit()


asyncio.run(app.run())
print(json.dumps(sorted(seen, key=str)))
