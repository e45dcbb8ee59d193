"""State that remembers how it was at certain offsets, can be read as of one and can go back to one.

Theory of operation. A snapshot costs nothing when it is taken: it is an empty notebook. The first time a key changes
after it, the old value goes into the notebook of the newest snapshot. So going back to a snapshot means putting the
notebooks' entries back, newest first; reading as of one means looking for the key in that notebook, then in the later
ones, then in the present; forgetting one means dropping its notebook. Owners of state (`TimelineDict`, `TimelineValue`)
belong to one `SnapshotRegistry`, which snapshots and reverts them all together.

Values must be immutable or timelines themselves. After a revert a dict's order of iteration may differ from before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, MutableMapping
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


_MISSING: Final = _Missing()


class _Snapshot:
    __slots__ = ("notebooks", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.notebooks: dict[_Owner, dict[Any, Any]] = {}


class _Owner:
    """State that a registry can revert. Equality is identity, so owners can be keys."""

    __slots__ = ("_notebook", "_registry", "_snapshot")

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._snapshot: _Snapshot | None = None
        self._notebook: dict[Any, Any] = {}

    def _current_notebook(self) -> dict[Any, Any] | None:
        """Where to note old values: the newest snapshot's notebook for this owner, None without a snapshot."""
        newest = self._registry._newest
        if newest is not self._snapshot:
            self._snapshot = newest
            if newest is not None:
                self._notebook = newest.notebooks.setdefault(self, {})
        return None if newest is None else self._notebook

    def _notebooks_from(self, offset: int) -> Iterator[dict[Any, Any]]:
        for snapshot in self._registry._from(offset):
            notebook = snapshot.notebooks.get(self)
            if notebook:
                yield notebook

    def _put_back(self, notebook: dict[Any, Any]) -> None:
        raise NotImplementedError


_offset_of = attrgetter("offset")


class SnapshotRegistry:
    """The snapshots of a family of timelines, by ascending offset."""

    def __init__(self) -> None:
        self._snapshots: list[_Snapshot] = []
        self._newest: _Snapshot | None = None

    @property
    def offsets(self) -> list[int]:
        return [snapshot.offset for snapshot in self._snapshots]

    def snapshot(self, offset: int) -> None:
        """Remember the state as it is now under ``offset``, which must not be below the newest snapshot's.

        A second snapshot at the same offset is the first one: it keeps the state that one remembers.
        """
        if self._newest is not None:
            assert offset >= self._newest.offset, f"snapshot {offset} is older than {self._newest.offset}"
            if offset == self._newest.offset:
                return
        self._newest = _Snapshot(offset)
        self._snapshots.append(self._newest)

    def revert_to(self, offset: int) -> None:
        """Make everything as it was at the snapshot of exactly this offset, and drop the later ones."""
        index = bisect_left(self._snapshots, offset, key=_offset_of)
        assert [s.offset for s in self._snapshots[index : index + 1]] == [offset], f"no snapshot at {offset}"
        for snapshot in reversed(self._snapshots[index:]):
            for owner, notebook in snapshot.notebooks.items():
                owner._put_back(notebook)
        del self._snapshots[index:]
        self._newest = _Snapshot(offset)
        self._snapshots.append(self._newest)

    def forget_below(self, offset: int) -> None:
        """Drop the snapshots that are not needed any more to read as of ``offset`` or later."""
        keep_from = bisect_right(self._snapshots, offset, key=_offset_of) - 1
        if keep_from > 0:
            del self._snapshots[:keep_from]

    def forget_all(self) -> None:
        """Drop every snapshot and keep the present."""
        self._snapshots.clear()
        self._newest = None

    def _from(self, offset: int) -> list[_Snapshot]:
        """The newest snapshot at or below ``offset`` and all later ones."""
        index = bisect_right(self._snapshots, offset, key=_offset_of) - 1
        if index < 0:
            raise LookupError(f"no snapshot at or below {offset}")
        return self._snapshots[index:]


class TimelineDict(_Owner, MutableMapping[K, V]):
    """A dict of the present; the ``_at`` methods read as of the newest snapshot at or below an offset."""

    __slots__ = ("_present",)

    def __init__(self, registry: SnapshotRegistry) -> None:
        super().__init__(registry)
        self._present: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self._present[key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        return self._present.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._present

    def __len__(self) -> int:
        return len(self._present)

    def __iter__(self) -> Iterator[K]:
        return iter(self._present)

    def __setitem__(self, key: K, value: V) -> None:
        notebook = self._current_notebook()
        if notebook is not None and key not in notebook:
            notebook[key] = self._present.get(key, _MISSING)
        self._present[key] = value

    def __delitem__(self, key: K) -> None:
        old = self._present.pop(key)
        notebook = self._current_notebook()
        if notebook is not None:
            notebook.setdefault(key, old)

    @overload
    def get_at(self, key: K, offset: int) -> V | None: ...
    @overload
    def get_at(self, key: K, offset: int, default: D) -> V | D: ...
    def get_at(self, key: K, offset: int, default: Any = None) -> Any:
        """The value as of an offset; LookupError when nothing that old is remembered."""
        for notebook in self._notebooks_from(offset):
            if key in notebook:
                old = notebook[key]
                return default if old is _MISSING else old
        return self._present.get(key, default)

    def copy_at(self, offset: int) -> dict[K, V]:
        """All of it as of an offset; LookupError when nothing that old is remembered."""
        past: dict[K, V] = dict(self._present)
        for notebook in reversed(list(self._notebooks_from(offset))):
            _restore(past, notebook)
        return past

    def _put_back(self, notebook: dict[Any, Any]) -> None:
        _restore(self._present, notebook)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        return f"TimelineDict({self._present!r})"


def _restore(present: dict[Any, Any], notebook: dict[Any, Any]) -> None:
    for key, old in notebook.items():
        if old is _MISSING:
            present.pop(key, None)
        else:
            present[key] = old


class TimelineValue(_Owner, Generic[V]):
    """One value with a past."""

    __slots__ = ("_present",)

    def __init__(self, registry: SnapshotRegistry, initial: V) -> None:
        super().__init__(registry)
        self._present = initial

    @property
    def value(self) -> V:
        return self._present

    @value.setter
    def value(self, value: V) -> None:
        notebook = self._current_notebook()
        if notebook is not None:
            notebook.setdefault(None, self._present)
        self._present = value

    def value_at(self, offset: int) -> V:
        """The value as of an offset; LookupError when nothing that old is remembered."""
        for notebook in self._notebooks_from(offset):
            old: V = notebook[None]
            return old
        return self._present

    def _put_back(self, notebook: dict[Any, Any]) -> None:
        self._present = notebook[None]

    def __repr__(self) -> str:
        return f"TimelineValue({self._present!r})"
