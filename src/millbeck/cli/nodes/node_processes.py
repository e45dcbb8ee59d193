"""Several nodes on this host, each in a process of its own, under one command.

The command formats the directories, starts a process for each node (`cli.fleet_member`), waits until all of them serve,
and watches. A node that ends by itself is named and started again; one that cannot be started, or keeps ending, ends
them all. However this process ends, the others end with it: they watch their standard input.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

START_SECONDS_MAX: Final = 90.0
STOP_SECONDS_MAX: Final = 60.0
RESTARTS_MAX: Final = 5
RESTARTS_WINDOW_SECONDS: Final = 60.0
RESTART_PAUSE_SECONDS: Final = 1.0
_ERROR_LINES_KEPT: Final = 5
_PACKAGES: Final = str(Path(__file__).resolve().parents[2])
_ENTRY: Final = "import sys; sys.path.append(sys.argv.pop(1)); from millbeck.cli.fleet_member import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberOrder:
    """One node to run: its number, and its whole configuration."""

    node_id: int
    settings: Mapping[str, str]


class Member:
    """The process of one node; ``answer`` is what it said when it was ready."""

    def __init__(self, order: MemberOrder, *, verbose: bool) -> None:
        self.order = order
        self.answer: dict[str, int] = {}
        self._verbose = verbose
        self._process: asyncio.subprocess.Process | None = None
        self._said: deque[str] = deque(maxlen=_ERROR_LINES_KEPT)
        self._reading: asyncio.Task[None] | None = None

    @property
    def is_launched(self) -> bool:
        return self._process is not None

    async def launch(self) -> None:
        order = {"settings": dict(self.order.settings), "verbose": self._verbose}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _ENTRY,
            _PACKAGES,
            json.dumps(order),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Ctrl-C is for this process, which ends the others in order.
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read_errors(self._process))

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            text = line.decode("utf-8", "replace").rstrip()
            self._said.append(text)
            if self._verbose:
                click.echo(f"node {self.order.node_id}: {text}", err=True)

    async def wait_until_ready(self) -> None:
        """Raises `click.ClickException` when it ends first."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        line = await process.stdout.readline()
        try:
            self.answer = json.loads(line)
        except ValueError as error:
            await self.wait()
            raise click.ClickException(f"node {self.order.node_id} did not start: {self.last_words()}") from error

    async def wait(self) -> int:
        """Its exit code, when it has ended."""
        assert self._process is not None
        code = await self._process.wait()
        if self._reading is not None:
            await self._reading
        return code

    def last_words(self) -> str:
        return (self._said[-1] if self._said else "it said nothing").removeprefix("millbeck: ")

    def tell_to_stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


class Fleet:
    def __init__(self, orders: Sequence[MemberOrder], *, verbose: bool) -> None:
        self.members = [Member(order, verbose=verbose) for order in orders]
        self._is_stopping = False
        self._failure: asyncio.Future[click.ClickException] = asyncio.get_running_loop().create_future()
        self._watches: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Return when all of them serve; raises `click.ClickException` that names the one that does not."""
        for member in self.members:
            await member.launch()
        # Raised after the clauses: what is raised inside of one comes out in a group.
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
        """When it can not go on: why."""
        return await self._failure

    async def _watch(self, member: Member) -> None:
        loop = asyncio.get_running_loop()
        ends: deque[float] = deque(maxlen=RESTARTS_MAX)
        while not self._is_stopping:
            code = await member.wait()
            if self._is_stopping:
                return
            ends.append(loop.time())
            number = member.order.node_id
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}: {member.last_words()}"
            if len(ends) == RESTARTS_MAX and ends[-1] - ends[0] < RESTARTS_WINDOW_SECONDS:
                self._fail(f"node {number} keeps ending; the last time it {how}")
                return
            click.echo(f"millbeck: node {number} {how}; it is started again", err=True)
            await asyncio.sleep(RESTART_PAUSE_SECONDS)
            if not self._is_stopping:
                await member.launch()
                try:
                    await member.wait_until_ready()
                except click.ClickException:
                    continue
                click.echo(f"millbeck: node {number} is back", err=True)

    def _fail(self, message: str) -> None:
        if not self._failure.done():
            self._failure.set_result(click.ClickException(message))

    async def stop(self) -> None:
        """End all of them in good order; one that does not is killed."""
        self._is_stopping = True
        for member in self.members:
            member.tell_to_stop()
        running = [asyncio.ensure_future(member.wait()) for member in self.members if member.is_launched]
        if running:
            _, late = await asyncio.wait(running, timeout=STOP_SECONDS_MAX)
            if late:
                for member in self.members:
                    member.kill()
                await asyncio.wait(late)
        for watch in self._watches:
            watch.cancel()
