"""Modules come in while something else is waited for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from millbeck.pipeline.preloading import OF_A_DRIVER, loading


def test_what_is_loaded_meanwhile_is_there_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needed_later.py").write_text("import threading\nby = threading.current_thread().name\n")
    (tmp_path / "broken_later.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(tmp_path)
    with loading(("broken_later", "not_there_at_all", "needed_later")):
        pass
    assert sys.modules.pop("needed_later").by == "millbeck-loading"
    assert "broken_later" not in sys.modules


def test_it_is_awaited_also_when_the_other_thing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_later.py").write_text("import time\ntime.sleep(0.05)\nis_whole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyError), loading(("slow_later",)):
        raise KeyError
    assert sys.modules.pop("slow_later").is_whole


def test_what_a_driver_needs_exists() -> None:
    with loading():
        pass
    assert [name for name in OF_A_DRIVER if name not in sys.modules] == []
