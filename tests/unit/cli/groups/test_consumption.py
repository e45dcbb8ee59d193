from __future__ import annotations

import pytest
from click.testing import CliRunner

from millbeck.cli.commands.consume import command
from millbeck.cli.connection_options import Target
from millbeck.cli.groups import consumption
from millbeck.kernel.environment import Environment
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import configure, create, produce, share_harness


class Printed:
    def __init__(self) -> None:
        self.buffer = self
        self.text = b""

    def write(self, data: bytes) -> None:
        self.text += data

    def flush(self) -> None: ...


def test_records_are_printed_and_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = Printed()

    class Stand:
        stdout = printed

    monkeypatch.setattr(consumption, "sys", Stand)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        async def reachable(cluster: object, target: Target) -> None: ...

        monkeypatch.setattr(consumption, "check_reachable", reachable)
        await create(client)
        await configure(client, "g", share_auto_offset_reset="earliest")
        await produce(client, b"a", b"b", b"c")
        settings = {"bootstrap.servers": "n1:9092", "group.id": "g", "share.acknowledgement.mode": "explicit"}
        for count in (2, None):
            await consumption.print_shared(
                environment,
                settings,
                None,  # type: ignore[arg-type]
                topics=("t",),
                count_max=count,
                idle_ms_max=4000,
                print_record=lambda _, record: (record.value or b"") + b"\n",
            )
        assert printed.text == b"a\nb\nc\n"

    share_harness().run(scenario)


@pytest.mark.parametrize(
    "arguments",
    [["t", "--share"], ["t", "--share", "-g", "g", "--from-beginning"], ["t", "--share", "-g", "g", "-p", "0"]],
)
def test_a_share_group_says_itself_where_it_reads(arguments: list[str]) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert "share" in result.output
