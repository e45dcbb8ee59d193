"""A seeded run of three nodes whose ACLs change while nodes crash, restart and load snapshots.

Invariant Q2 is checked: after each metadata image that a node has applied, its authorizer decides as a simple model of
the ACLs in that image does. So a revoked permission is denied on every node that has applied the revocation.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Final

from millbeck.client.admin import Admin
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage
from millbeck.security.acls import AccessControlEntry, AclFilter
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.security.principal import parse_principal
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.server.metadata.acl_publisher import SMALL_CHANGE_MAX, AclPublisher
from millbeck.simulation.checkers.acl_decisions import AclModel, AclQuestion
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.environment.node import stream
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.mutants.patching import patched

DECISIONS: Final = "Q2 decisions"
VACUOUS: Final = "vacuous"
LIMIT_SECONDS: Final = 600.0
ROUNDS: Final = 25
QUESTIONS: Final = 40
SUPER_USER: Final = "User:al"
"""A principal whose name is a prefix of another principal's name."""
PRINCIPALS: Final = ("User:alice", "User:bob", SUPER_USER)
HOSTS: Final = ("127.0.0.1", "10.0.0.1", "::1")
OPERATIONS: Final = (Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALTER, Operation.ALL)
SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;{SUPER_USER}",
    "metadata.log.max.record.bytes.between.snapshots": "5000",
}


@dataclass(slots=True)
class Seen:
    """Counts of the checks: a run with too few proves nothing."""

    allowed: int = 0
    denied: int = 0
    images: int = 0


class PermissionsRun:
    def __init__(self, seed: int) -> None:
        self.cluster = SimCluster(seed, settings=SETTINGS)
        self.seen = Seen()
        self._dice = stream(seed, "permissions run")
        self._questions = stream(seed, "permissions questions")
        self._anomalies: list[Anomaly] = []

    def run(self) -> list[Anomaly]:
        original = AclPublisher.publish

        async def publish(publisher: AclPublisher, image: MetadataImage, delta: MetadataDelta) -> None:
            await original(publisher, image, delta)
            self._check(publisher._authorizer, image)

        with self.cluster.world as world, patched() as patch:
            patch.replace(AclPublisher, "publish", publish)
            world.run(self._whole, limit_s=LIMIT_SECONDS)
        if min(self.seen.allowed, self.seen.denied) < 100 or self.seen.images < 3 * ROUNDS:
            self._anomalies.append(Anomaly(VACUOUS, str(self.seen)))
        return self._anomalies

    def _check(self, authorizer: StandardAuthorizer, image: MetadataImage) -> None:
        if not authorizer.is_loaded:
            return
        self.seen.images += 1
        model = AclModel(entries=tuple(image.acls.by_id.values()), super_users=(SUPER_USER,))
        for _ in range(QUESTIONS):
            asked = _question(self._questions)
            expected = model.allows(asked)
            found = authorizer.authorize(
                parse_principal(asked.principal), asked.host, asked.operation, asked.resource_type, asked.resource_name
            )
            if found:
                self.seen.allowed += 1
            else:
                self.seen.denied += 1
            if found != expected:
                word = "allowed" if found else "denied"
                self._anomalies.append(Anomaly(DECISIONS, f"{asked} was {word} at offset {image.offset}"))

    async def _whole(self, environment: Environment) -> None:
        self.cluster.start_all()
        dice = self._dice
        bootstrap = ",".join(f"{host}:{port}" for host, port in self.cluster.addresses)
        async with Admin({"bootstrap.servers": bootstrap}, environment=environment) as admin:
            for _ in range(ROUNDS):
                try:
                    await self._change(admin)
                except ApiError:
                    pass  # the controller is on the way to another node
                if dice.random() < 0.2:
                    machine = self.cluster.machine(dice.choice(self.cluster.members))
                    machine.power_loss() if dice.random() < 0.5 else machine.crash()
                await asyncio.sleep(dice.uniform(0.05, 1.5))
                self.cluster.start_all()

    async def _change(self, admin: Admin) -> None:
        dice = self._dice
        if dice.random() < 0.6:
            count = 2 * SMALL_CHANGE_MAX if dice.random() < 0.15 else dice.randint(1, 4)
            await admin.create_acls([_entry(dice) for _ in range(count)], timeout_s=30)
        else:
            wanted = AclFilter() if dice.random() < 0.2 else AclFilter(resource_name=_name(dice))
            await admin.delete_acls([wanted], timeout_s=30)


def _entry(dice: Random) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=ResourceType.TOPIC,
        resource_name="*" if dice.random() < 0.15 else _name(dice),
        pattern_type=dice.choice((PatternType.LITERAL, PatternType.PREFIXED)),
        principal=dice.choice((*PRINCIPALS, "User:*")),
        host=dice.choice((*HOSTS, "*", "*")),
        operation=dice.choice(OPERATIONS),
        permission_type=dice.choice((Permission.ALLOW, Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def _question(dice: Random) -> AclQuestion:
    return AclQuestion(
        principal=dice.choice(PRINCIPALS),
        host=dice.choice(HOSTS),
        operation=dice.choice(OPERATIONS[:-1]),
        resource_type=ResourceType.TOPIC,
        resource_name=_name(dice),
    )


def _name(dice: Random) -> str:
    return "".join(dice.choice("ab") for _ in range(dice.randint(1, 3)))
