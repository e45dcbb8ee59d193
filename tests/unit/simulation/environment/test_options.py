"""Options are drawn from the seed and never shared."""

from __future__ import annotations

from millbeck.simulation import WorldOptions


def test_drawn_options_repeat_by_seed_and_differ_between_seeds() -> None:
    assert WorldOptions.drawn(7) == WorldOptions.drawn(7)
    drawn = [WorldOptions.drawn(seed) for seed in range(40)]
    assert len({repr(options) for options in drawn}) > 30
    assert {options.network.reset for options in drawn} == {0.0, 0.0005}
    assert any(options.disk.cold_read == 0.5 for options in drawn)


def test_each_disk_gets_its_own_faults() -> None:
    options = WorldOptions()
    options.disk_faults().sync_error = 1.0
    assert options.disk.sync_error == 0.0
    assert options.disk_faults().sync_error == 0.0
