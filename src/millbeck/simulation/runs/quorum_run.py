"""A seeded run of real quorum drivers on simulated machines: decisions are made, members are killed and lose power.

In the end every answered decision must be in the image of every member, at the same offset. Images of the same offset
are equal on all members whenever they are published (R6). Within one process the offsets of images never decrease.
"""

from __future__ import annotations

import asyncio
from typing import Final

from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.framing import encode
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import ConfigRecord
from millbeck.server.metadata.quorum_driver import MetadataLogFailed, QuorumDriver
from millbeck.simulation import World
from millbeck.simulation.environment.node import SimHost, stream
from millbeck.simulation.environment.options import WorldOptions
from millbeck.simulation.runs.quorum_node import QuorumNode, settings_of

LIMIT_SECONDS: Final = 600.0
FAULTS: Final = ("crash", "power loss", "partition", "one way", "heal", "pause", "slow disk", "power loss of all")


class QuorumRun:
    def __init__(
        self, seed: int, *, voter_count: int = 3, observer_count: int = 1, faults: tuple[str, ...] | None = None
    ) -> None:
        self.seed = seed
        self.dice = stream(seed, "quorum run")
        self.faults = faults or tuple(each for each in FAULTS if self.dice.random() < 0.7) or ("crash",)
        self.world = World(seed, WorldOptions.drawn(seed))
        self.voters = tuple(range(1, voter_count + 1))
        self.node_ids = tuple(range(1, voter_count + observer_count + 1))
        self.members: dict[int, QuorumNode] = {}
        self.answered: dict[str, int] = {}
        self.gained_epochs: dict[int, int] = {}
        self.published_count = 0
        self._decision_count = 0
        self._is_deciding = True
        self._images: dict[int, tuple[bytes, ...]] = {}

    def machine(self, node_id: int) -> SimHost:
        return self.world.node(f"c{node_id}")

    # The members.

    def start(self, node_id: int) -> None:
        if not self.machine(node_id).is_running:
            self.machine(node_id).start(lambda environment: self._main(environment, node_id))

    async def _main(self, environment: Environment, node_id: int) -> None:
        member = QuorumNode(
            environment, settings_of(node_id, self.voters, directory_id=bytes([node_id] * 16)), node_id=node_id
        )
        self.members[node_id] = member
        last_offset = -1

        async def publish(image: MetadataImage, delta: MetadataDelta) -> None:
            nonlocal last_offset
            assert image.offset > last_offset, f"c{node_id} publishes {image.offset} after {last_offset}"
            last_offset = image.offset
            self._compare(node_id, image)

        def gained(epoch: int) -> None:
            assert self.gained_epochs.setdefault(epoch, node_id) == node_id, f"R1: two controllers in epoch {epoch}"

        member.driver.subscribe(publish)
        member.driver.on_leadership(gained=gained, lost=lambda epoch: None)
        member.spawn(self._decide_for_ever(member.driver))
        await member.serve()

    def _compare(self, node_id: int, image: MetadataImage) -> None:
        self.published_count += 1
        records = () if image.open_transaction is not None else tuple(encode(record) for record in image.records())
        known = self._images.setdefault(image.offset, records)
        assert known == records, f"R6: c{node_id} has another image at offset {image.offset}"

    # The run.

    def run(self) -> None:
        """Run everything; raises on the first anomaly."""
        try:
            self.world.run(self._scenario, limit_s=LIMIT_SECONDS)
        finally:
            self.world.close()

    async def _scenario(self, environment: Environment) -> None:
        for node_id in self.node_ids:
            self.start(node_id)
        for _ in range(12):
            await asyncio.sleep(self.dice.uniform(0.05, 2.5))
            await self._break()
        self.world.network.heal()
        for node_id in self.node_ids:
            self.machine(node_id).disk.faults.slowness = 1.0
            self.start(node_id)
        answered_count = len(self.answered)
        while len(self.answered) < answered_count + 5:
            await asyncio.sleep(0.1)
        self._is_deciding = False
        await self._wait_for_all()

    async def _wait_for_all(self) -> None:
        for node_id in self.node_ids:
            driver = self.members[node_id].driver
            while not all(driver.image.configs.of_all_brokers().get(name) for name in self.answered):
                await asyncio.sleep(0.1)

    async def _decide_for_ever(self, driver: QuorumDriver) -> None:
        while True:
            await asyncio.sleep(self.dice.uniform(0.0, 0.1))
            if not driver.is_active or not self._is_deciding:
                continue
            self._decision_count += 1
            name = f"n{self._decision_count}"
            record = ConfigRecord(resource_type=4, resource_name="", name=name, value="v" * self.dice.choice((1, 300)))

            def decide(image: MetadataImage, record: ConfigRecord = record) -> Result[int]:
                return Result(response=image.offset + 1, records=[record])

            try:
                self.answered[name] = await driver.submit(decide)
            except (ApiError, MetadataLogFailed):
                continue

    async def _break(self) -> None:
        fault = self.dice.choice(self.faults)
        victim = self.dice.choice(self.node_ids)
        machine, others = self.machine(victim), [f"c{each}" for each in self.node_ids if each != victim]
        match fault:
            case "crash" | "power loss":
                machine.crash() if fault == "crash" else machine.power_loss()
                await asyncio.sleep(self.dice.choice((0.0, 0.01, 0.5, 2.0)))
                self.start(victim)
            case "power loss of all":
                for node_id in self.node_ids:
                    self.machine(node_id).power_loss()
                for node_id in self.node_ids:
                    self.start(node_id)
            case "partition" | "one way":
                self.world.network.partition([machine.name], others, both_ways=fault == "partition")
            case "heal":
                self.world.network.heal()
            case "pause":
                machine.pause(self.dice.uniform(0.1, 3.0))
            case "slow disk":
                machine.disk.faults.slowness = self.dice.choice((1.0, 50.0))
