"""Run several nodes on this host, each in a child process.

The parent formats the directories, starts a process for each node (`node_process`), waits until all of them are ready,
and supervises them. A node that exits is reported and restarted; if one cannot start, or keeps exiting, all are
stopped. A node that was stopped or killed on request stays down until it is started. When the parent ends for any
reason, the children exit too, because they watch their standard input for end of file.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

START_SECONDS_MAX: Final = 90.0
STOP_SECONDS_MAX: Final = 60.0
RESTARTS_MAX: Final = 5
RESTARTS_WINDOW_SECONDS: Final = 60.0
RESTART_PAUSE_SECONDS: Final = 1.0
ERROR_PREFIX: Final = "millbeck: "
"""The prefix of the line with which a node's process exits, in contrast to those of its log."""
_ERROR_LINES_KEPT: Final = 5
_PACKAGES: Final = str(Path(__file__).resolve().parents[2])
_ENTRY: Final = "import sys; sys.path.append(sys.argv.pop(1)); from millbeck.cli.nodes.node_process import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCommand:
    """The node id and configuration of a node to run."""

    node_id: int
    settings: Mapping[str, str]


class NodeProcess:
    """The process of one node; ``answer`` is the line of JSON it printed when ready."""

    def __init__(self, order: NodeCommand, *, verbose: bool) -> None:
        self.order = order
        self.answer: dict[str, int] = {}
        self._verbose = verbose
        self._process: asyncio.subprocess.Process | None = None
        self._error_lines: deque[str] = deque(maxlen=_ERROR_LINES_KEPT)
        self._reading: asyncio.Task[None] | None = None
        self._began_s = 0.0
        self.restart_count = 0
        self.wanted = asyncio.Event()
        """Whether the node should run; False while it is stopped on request."""
        self.wanted.set()
        self.serves = asyncio.Event()

    @property
    def is_launched(self) -> bool:
        return self._process is not None

    @property
    def process_id(self) -> int | None:
        is_running = self._process is not None and self._process.returncode is None
        return self._process.pid if is_running and self._process is not None else None

    @property
    def state(self) -> str:
        if self.process_id is None:
            return "restarting" if self.wanted.is_set() else "stopped"
        return "running" if self.serves.is_set() else "starting"

    @property
    def uptime_seconds(self) -> int | None:
        return None if self.process_id is None else round(asyncio.get_running_loop().time() - self._began_s)

    async def launch(self) -> None:
        order = {"settings": dict(self.order.settings), "verbose": self._verbose}
        self._began_s = asyncio.get_running_loop().time()
        self.serves.clear()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _ENTRY,
            _PACKAGES,
            f"millbeck-node-{self.order.node_id}",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C goes to the parent only, which then stops the nodes in order.
            start_new_session=True,
        )
        assert self._process.stdin is not None
        # Not passed as an argument, because other users can read arguments in the process list.
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._reading = asyncio.create_task(self._read_errors(self._process))

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        """Pass on the node's log, but not its last words: those are part of the message about its end."""
        assert process.stderr is not None
        while True:
            try:
                line = await process.stderr.readline()
            except ValueError:
                # Longer than the stream's limit, which drops it. Unread output would block the node.
                line = b"(a line that is too long was left out)\n"
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip()
            self._error_lines.append(text)
            if not text.startswith(ERROR_PREFIX):
                # When nobody reads what this process prints, the nodes' output must be read all the same.
                with suppress(OSError):
                    click.echo(f"node {self.order.node_id}: {text}", err=True)

    async def wait_until_ready(self) -> None:
        """Wait until the node serves; raises `click.ClickException` if it exits first."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        line = await process.stdout.readline()
        try:
            self.answer = json.loads(line)
        except ValueError as error:
            await self.wait()
            raise click.ClickException(f"node {self.order.node_id} did not start: {self.last_error_line()}") from error
        self.serves.set()

    async def wait(self) -> int:
        """Wait for the process to exit; returns its exit code."""
        assert self._process is not None
        code = await self._process.wait()
        if self._reading is not None:
            await self._reading
        return code

    def last_error_line(self) -> str:
        return (self._error_lines[-1] if self._error_lines else "no error output").removeprefix(ERROR_PREFIX)

    def request_stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


class NodeProcesses:
    def __init__(self, orders: Sequence[NodeCommand], *, verbose: bool) -> None:
        self.members = [NodeProcess(order, verbose=verbose) for order in orders]
        self._is_stopping = False
        self._failure: asyncio.Future[click.ClickException] = asyncio.get_running_loop().create_future()
        self._watches: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all nodes and wait until they serve; raises `click.ClickException` naming the one that does not."""
        for member in self.members:
            await member.launch()
        # Raised after the except* clauses, because an exception raised inside one is wrapped in a group.
        failure: click.ClickException | None = None
        try:
            async with asyncio.timeout(START_SECONDS_MAX), asyncio.TaskGroup() as tasks:
                for member in self.members:
                    tasks.create_task(member.wait_until_ready())
        except* click.ClickException as failures:
            failure = click.ClickException(str(failures.exceptions[0]))
        except* TimeoutError:
            late = [str(member.order.node_id) for member in self.members if not member.answer]
            failure = click.ClickException(f"node {', '.join(late)} did not start within {START_SECONDS_MAX:g} s")
        if failure is not None:
            raise failure
        self._watches = [asyncio.create_task(self._watch(member)) for member in self.members]

    async def failed(self) -> click.ClickException:
        """Wait for a failure that cannot be recovered; returns it."""
        return await self._failure

    async def _watch(self, member: NodeProcess) -> None:
        loop = asyncio.get_running_loop()
        ends: deque[float] = deque(maxlen=RESTARTS_MAX)
        while not self._is_stopping:
            code = await member.wait()
            member.serves.clear()
            if self._is_stopping:
                return
            number = member.order.node_id
            if not member.wanted.is_set():
                await member.wanted.wait()
                ends.clear()
                await self._start_again(member)
                continue
            ends.append(loop.time())
            how = (
                f"was killed by signal {-code}" if code < 0 else f"exited with code {code}: {member.last_error_line()}"
            )
            if len(ends) == RESTARTS_MAX and ends[-1] - ends[0] < RESTARTS_WINDOW_SECONDS:
                self._fail(f"node {number} keeps exiting; the last time it {how}")
                return
            click.echo(f"millbeck: node {number} {how}; restarting it", err=True)
            await asyncio.sleep(RESTART_PAUSE_SECONDS)
            if self._is_stopping or not member.wanted.is_set():
                continue
            member.restart_count += 1
            if await self._start_again(member):
                click.echo(f"millbeck: node {number} is back", err=True)

    async def _start_again(self, member: NodeProcess) -> bool:
        if self._is_stopping:
            return False
        await member.launch()
        try:
            await member.wait_until_ready()
        except click.ClickException:
            return False
        return True

    # On request

    def hold(self, node_id: int | None, *, is_crash: bool) -> NodeProcess:
        """Stop or kill a node, which stays down; raises `click.ClickException`."""
        member = self._member(node_id)
        member.wanted.clear()
        if is_crash:
            member.kill()
        else:
            member.request_stop()
        return member

    async def release(self, node_id: int | None) -> NodeProcess:
        """Start a node that is down, and wait until it serves; raises `click.ClickException`."""
        member = self._member(node_id)
        member.wanted.set()
        try:
            await asyncio.wait_for(member.serves.wait(), START_SECONDS_MAX)
        except TimeoutError:
            raise click.ClickException(
                f"node {node_id} does not serve yet after {START_SECONDS_MAX:g} s: {member.last_error_line()}"
            ) from None
        return member

    def _member(self, node_id: int | None) -> NodeProcess:
        for member in self.members:
            if member.order.node_id == node_id:
                return member
        known = ", ".join(str(member.order.node_id) for member in self.members)
        raise click.ClickException(f"there is no node {node_id}: it is one of {known}")

    def _fail(self, message: str) -> None:
        if not self._failure.done():
            self._failure.set_result(click.ClickException(message))

    async def stop(self) -> None:
        """Stop all nodes in order; one that does not exit in time is killed."""
        self._is_stopping = True
        for member in self.members:
            member.request_stop()
        running = [asyncio.ensure_future(member.wait()) for member in self.members if member.is_launched]
        if running:
            _, late = await asyncio.wait(running, timeout=STOP_SECONDS_MAX)
            if late:
                for member in self.members:
                    member.kill()
                await asyncio.wait(late)
        for watch in self._watches:
            watch.cancel()
