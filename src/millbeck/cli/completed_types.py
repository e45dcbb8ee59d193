"""Types of parameters whose values a shell can complete: names in the cluster, settings, profiles.

The types accept any text; only completion looks values up. It queries the cluster of the command line for at most 300
ms, and offers nothing if that fails: an error message would appear in the middle of what the user types.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from millbeck.client.admin import Admin

LOOKUP_SECONDS_MAX: Final = 0.3
ITEMS_MAX: Final = 1000

Names = Callable[[click.Context], Iterable[str]]


class CompletedType(click.types.StringParamType):
    """A text parameter with completions from ``names``; with ``separator`` the last element of a list is completed."""

    def __init__(self, name: str, names: Names, *, separator: str | None = None, suffix: str = "") -> None:
        self.name = name
        self._names = names
        self._separator = separator
        self._suffix = suffix

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        before, separator, start = incomplete.rpartition(self._separator) if self._separator else ("", "", incomplete)
        found = sorted(name for name in self._names(ctx) if name.startswith(start))[:ITEMS_MAX]
        return [CompletionItem(f"{before}{separator}{name}{self._suffix}") for name in found]


def _from_cluster(work: Callable[[Admin], Awaitable[Iterable[str]]]) -> Names:
    def names(ctx: click.Context) -> Iterable[str]:
        try:
            return _ask(ctx, work)
        except Exception:
            # No failure can be reported here, because the user is typing a command.
            return ()

    return names


def _ask(ctx: click.Context, work: Callable[[Admin], Awaitable[Iterable[str]]]) -> list[str]:
    import asyncio

    from millbeck.cli.connection_options import target_of_context
    from millbeck.client.admin import Admin

    logging.disable()
    target = target_of_context(ctx)

    async def ask() -> list[str]:
        async with (
            asyncio.timeout(LOOKUP_SECONDS_MAX),
            Admin(target.client_settings()) as admin,
        ):
            return list(await work(admin))

    return asyncio.run(ask())


async def _topics(admin: Admin) -> Iterable[str]:
    return await admin.list_topics()


async def _brokers(admin: Admin) -> Iterable[str]:
    return [str(node.node_id) for node in (await admin.describe_cluster()).nodes]


async def _consumer_groups(admin: Admin) -> Iterable[str]:
    return await admin.list_groups(types=("classic", "consumer"))


async def _share_groups(admin: Admin) -> Iterable[str]:
    return await admin.list_groups(types=("share",))


def _topic_settings(_: click.Context) -> Iterable[str]:
    from millbeck.storage.config import TOPIC_OPTIONS

    return TOPIC_OPTIONS.by_name


def _broker_settings(_: click.Context) -> Iterable[str]:
    from millbeck.server.config import BROKER_OPTIONS

    return BROKER_OPTIONS.by_name


def _profiles(_: click.Context) -> Iterable[str]:
    from millbeck.cli.profiles import ProfileStore

    return ProfileStore.of_user().names()


TOPIC: Final = CompletedType("topic", _from_cluster(_topics), separator=",")
BROKER: Final = CompletedType("broker", _from_cluster(_brokers), separator=",")
GROUP: Final = CompletedType("group", _from_cluster(_consumer_groups))
SHARE_GROUP: Final = CompletedType("share group", _from_cluster(_share_groups))
TOPIC_SETTING: Final = CompletedType("key=value", _topic_settings, suffix="=")
TOPIC_SETTING_NAME: Final = CompletedType("key", _topic_settings, separator=",")
BROKER_SETTING: Final = CompletedType("key=value", _broker_settings, suffix="=")
PROFILE: Final = CompletedType("name", _profiles)
FILE: Final = click.Path()
