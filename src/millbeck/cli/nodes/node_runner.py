"""Run one node in this process until it is told to stop or fails."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import click

from millbeck.cli.nodes.ports import PortUnusable, check_port_is_free
from millbeck.cli.nodes.startup_progress import report_startup_progress
from millbeck.host import real_environment
from millbeck.host.log_lines import log_to
from millbeck.host.loop import HostLoop
from millbeck.host.memory import give_back_freed_memory, keep_freed_memory
from millbeck.host.process import process_numbers, raise_open_files_limit
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.server.broker_lifecycle import RegistrationFailed
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import AlreadyFormatted, NotFormatted
from millbeck.server.metadata.quorum_driver import MetadataLogFailed
from millbeck.server.node import Node, NodeSettings
from millbeck.storage.directory import DirectoryLocked
from millbeck.storage.properties import MetaPropertiesError

LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s (%(name)s)"

Started = Callable[[Node], Awaitable[bool]]
"""Called when the node is ready; returning False stops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorHints:
    """Remedies for the most common startup failures."""

    port_in_use: str
    address: str
    directory_in_use: str


def run_node(
    config: NodeConfig,
    prepare: Callable[[Environment], None],
    started: Started,
    *,
    advice: ErrorHints,
    verbose: bool,
    begun: Callable[[], Awaitable[None]] | None = None,
    stopping: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Run a node in this process; exits with an error message if it cannot run.

    ``begun`` is called before the node starts, which may wait for other nodes, and ``stopping`` before it stops.
    """
    log_to(sys.stderr, logging.INFO if verbose else logging.WARNING, LOG_FORMAT)
    # Checked before anything is written, so that a node that cannot listen leaves no files.
    for address in (*config.client_addresses(), *config.controller_addresses()):
        check_address(address.host, address.port, advice)
    raise_open_files_limit()
    try:
        with asyncio.Runner(loop_factory=HostLoop) as runner:
            runner.run(_run(config, prepare, started, begun, stopping))
    except DirectoryLocked as error:
        raise click.ClickException(f"{error}; {advice.directory_in_use}") from error
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno == errno.EADDRINUSE:
            reason = f"{reason}; {advice.port_in_use}"
        raise click.ClickException(f"{error.filename}: {reason}" if error.filename else reason) from error
    except (
        AlreadyFormatted,
        InvalidConfig,
        MetaPropertiesError,
        MetadataLogFailed,
        NotFormatted,
        RegistrationFailed,
    ) as error:
        raise click.ClickException(str(error)) from error


def check_address(host: str, port: int, advice: ErrorHints) -> None:
    """Check an address; raises `click.ClickException` if the node cannot listen on it."""
    try:
        check_port_is_free(host, port)
    except PortUnusable as error:
        hint = f"; {advice.port_in_use}" if error.is_taken else f"; {advice.address}"
        raise click.ClickException(f"{error}{hint}") from error


async def _run(
    config: NodeConfig,
    prepare: Callable[[Environment], None],
    started: Started,
    begun: Callable[[], Awaitable[None]] | None,
    stopping: Callable[[], Awaitable[None]] | None,
) -> None:
    environment = real_environment()
    prepare(environment)
    keep_freed_memory()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, HostLoop)
    settings = NodeSettings(
        manages_memory=True,
        is_alone=loop.serves_one_event,
        process_numbers=process_numbers,
        give_back_memory=give_back_freed_memory,
    )
    node = Node(environment, config, settings)
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, node.reload)
    if begun is not None:
        await begun()
    if not await _start(node, stop):
        return
    failure: BaseException | None = None
    try:
        if await started(node):
            node.failed.add_done_callback(lambda _: stop.set())
            await stop.wait()
            failure = node.failed.result() if node.failed.done() else None
    finally:
        if stopping is not None:
            await stopping()
        await node.stop()
    if failure is not None:
        raise click.ClickException(f"the node failed: {failure}")


async def _start(node: Node, stop: asyncio.Event) -> bool:
    """Start the node, unless told to stop first; returns whether it runs."""
    starting = asyncio.ensure_future(node.start())
    stopping = asyncio.ensure_future(stop.wait())
    telling = asyncio.ensure_future(report_startup_progress(node))
    try:
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            return False
    finally:
        stopping.cancel()
        telling.cancel()
    await starting
    return True
