"""Random ACLs and questions that often concern each other: few principals, hosts and letters."""

from __future__ import annotations

from random import Random

from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.simulation.checkers.acl_decisions import AclModel, AclQuestion

PRINCIPALS = ("User:alice", "User:alice", "User:al", "Group:alice")
HOSTS = ("127.0.0.1", "10.0.0.1", "0:0:0:0:0:0:0:1")
"""As Kafka's own class spells them."""
TYPES = tuple(ResourceType)[2:]
OPERATIONS = tuple(Operation)[3:]


def random_model(random: Random) -> AclModel:
    count = random.choice((0, 1, 3, 10, 30))
    return AclModel(
        entries=tuple(random_entry(random) for _ in range(count)),
        super_users=random.choice(((), ("User:al",), ("User:alic", "Group:alice"))),
        allow_everyone_if_no_acl_found=random.random() < 0.5,
    )


def random_entry(random: Random) -> AccessControlEntry:
    pattern = random.choice((PatternType.LITERAL, PatternType.LITERAL, PatternType.PREFIXED))
    name = "*" if random.random() < 0.2 else _name(random, 3)
    return AccessControlEntry(
        resource_type=_type(random),
        resource_name=name,
        pattern_type=pattern,
        principal=random.choice((*PRINCIPALS, "User:*")),
        host=random.choice((*HOSTS, "*", "*", "*", "*", "*")),
        operation=random.choice((*OPERATIONS, Operation.READ, Operation.ALTER_CONFIGS, *(Operation.ALL,) * 6)),
        permission_type=random.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
    )


def random_question(random: Random) -> AclQuestion:
    return AclQuestion(
        principal=random.choice(PRINCIPALS),
        host=random.choice(HOSTS),
        operation=random.choice((*OPERATIONS, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS)),
        resource_type=_type(random),
        resource_name="*" if random.random() < 0.02 else _name(random, 4),
    )


def _type(random: Random) -> ResourceType:
    return random.choice((*(ResourceType.TOPIC,) * 20, *TYPES))


def _name(random: Random, length_max: int) -> str:
    return "".join(random.choice("aaab*") for _ in range(random.randint(1, length_max)))
