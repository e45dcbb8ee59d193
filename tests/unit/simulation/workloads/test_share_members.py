from __future__ import annotations

from millbeck.simulation.workloads.share_members import ShareMemberBehaviour


def test_most_records_are_accepted() -> None:
    behaviour = ShareMemberBehaviour()
    assert behaviour.release + behaviour.reject + behaviour.forget < 0.5
    assert behaviour.die < behaviour.release
