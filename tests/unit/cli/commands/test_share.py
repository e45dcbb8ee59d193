from __future__ import annotations

import pytest
from click.testing import CliRunner

from millbeck.cli.commands.share import _member_rows, _state_row, command
from millbeck.client.admin.share_groups import ShareGroupDescription, ShareMemberDescription
from millbeck.kernel.ids import TopicPartition

GROUP = ShareGroupDescription(
    group_id="jobs",
    state="Stable",
    epoch=4,
    assignment_epoch=3,
    assignor="simple",
    coordinator_id=1,
    members=(
        ShareMemberDescription(
            member_id="m",
            client_id="c",
            host="/h",
            epoch=3,
            assignment=(TopicPartition("orders", 0), TopicPartition("orders", 2)),
        ),
    ),
)


def test_rows_of_members_and_states() -> None:
    (row,) = _member_rows(GROUP, verbose=True)
    assert (row["assignment"], row["member_epoch"]) == ("orders:0,orders:2", 3)
    assert "member_epoch" not in _member_rows(GROUP, verbose=False)[0]
    assert _state_row(GROUP, verbose=False) == {"group": "jobs", "coordinator": 1, "state": "Stable", "members": 1}
    assert _state_row(GROUP, verbose=True)["group_epoch"] == 4
    assert _state_row(GROUP, False, "dlq.jobs")["dead_letters"] == "dlq.jobs"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["describe"], "no group given"),
        (["describe", "g", "--members", "--state"], "cannot be combined"),
        (["reset", "g", "--to-earliest"], "--topic or --all-topics"),
        (["reset", "g", "--topic", "t", "--to-earliest", "--dry-run", "--execute"], "cannot be combined"),
        (["delete-offsets", "--topic", "t"], "no group given"),
        (["--reset-offsets", "--group", "g", "--group", "h", "--all-topics"], ""),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], complaint: str) -> None:
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert complaint in result.output
