"""An administrator that makes one setting after another while things break, and remembers which were confirmed.

Each is for a group of its own and none is ever changed, so an answer that was lost, or a request that comes late, can
be told from a confirmed one that is gone.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final

from millbeck.testing.workloads.produce_and_read import REPLY_SECONDS, Cluster, Trouble
from millbeck.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

GROUP: Final = 32
OPTION: Final = "consumer.session.timeout.ms"
PAUSE_SECONDS_MAX: Final = 3.0


async def make_settings(cluster: Cluster, dice: random.Random, heard: Callable[[str], None]) -> int:
    """Until the run is calm; returns how many were confirmed."""
    number = confirmed = 0
    while not cluster.is_calm:
        group = f"settings-{number}"
        number += 1
        resource = AlterConfigsResource(GROUP, group, [AlterableConfig(OPTION, 0, str(45_000 + number % 10_000))])
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
