from __future__ import annotations

from millbeck.testing.workloads.share_members import Manners


def test_most_records_are_accepted() -> None:
    manners = Manners()
    assert manners.release + manners.reject + manners.forget < 0.5
    assert manners.die < manners.release
