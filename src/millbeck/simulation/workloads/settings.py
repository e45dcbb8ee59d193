"""An admin client that sets options one after the other during faults, and records which were confirmed.

Each option is set for a different group and never changed, so a lost response or a late request can be distinguished
from a confirmed option that is lost.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from millbeck.simulation.workloads.produce_and_read import REPLY_SECONDS, NodeAccess, Trouble
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

GROUP: Final = 32
OPTION: Final = "consumer.session.timeout.ms"
PAUSE_SECONDS_MAX: Final = 3.0


async def make_settings(cluster: NodeAccess, dice: random.Random, heard: Callable[[str], None]) -> int:
    """Make settings until the faults are over; returns the number confirmed."""
    number = confirmed = 0
    while not cluster.is_calm:
        group = f"settings-{number}"
        number += 1
        resource = IncrementalAlterConfigsResource(
            GROUP, group, [IncrementalAlterableConfig(OPTION, 0, str(45_000 + number % 10_000))]
        )
        client = await cluster.connect()
        try:
            request = IncrementalAlterConfigsRequest(resources=[resource])
            (answer,) = (await client.ask(request, 1, timeout_s=REPLY_SECONDS)).responses
            if answer.error_code == 0:
                confirmed += 1
                heard(group)
        except Trouble:
            pass
        finally:
            client.close()
        await asyncio.sleep(dice.random() * PAUSE_SECONDS_MAX)
    return confirmed
