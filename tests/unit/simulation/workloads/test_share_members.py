from __future__ import annotations

from millbeck.simulation.workloads.share_members import MemberBehaviour


def test_most_records_are_accepted() -> None:
    manners = MemberBehaviour()
    assert manners.release + manners.reject + manners.forget < 0.5
    assert manners.die < manners.release
