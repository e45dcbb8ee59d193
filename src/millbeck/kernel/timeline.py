"""Timeline data structures: state with snapshots by offset, which can be read as of a snapshot and reverted to it.

Theory of operation. A snapshot costs nothing when it is taken: it is an empty delta. The first time a key changes
after it, the old value is stored in the delta of the newest snapshot. Reverting to a snapshot puts the old values
back, newest delta first; reading as of one looks for the key in that delta, then in the later ones, then in the
current state; deleting one drops its delta. Owners of state (`TimelineDict`, `TimelineValue`) belong to one
`SnapshotRegistry`, which takes snapshots of all and reverts all together.

Values must be immutable or timelines themselves. After a revert a dict's iteration order may differ from before.
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
    """State that a registry can revert. Owners are compared by identity, so that they can be dict keys."""

    __slots__ = ("_notebook", "_registry", "_snapshot")

    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._snapshot: _Snapshot | None = None
        self._notebook: dict[Any, Any] = {}

    @property
    def registry(self) -> SnapshotRegistry:
        return self._registry

    def _current_notebook(self) -> dict[Any, Any] | None:
        """The delta of the newest snapshot for this owner, which gets old values; None without a snapshot."""
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
    """The snapshots of a set of timelines, by ascending offset."""

    def __init__(self) -> None:
        self._snapshots: list[_Snapshot] = []
        self._newest: _Snapshot | None = None

    @property
    def offsets(self) -> list[int]:
        return [snapshot.offset for snapshot in self._snapshots]

    def snapshot(self, offset: int) -> None:
        """Take a snapshot of the current state at ``offset``, which must not be below the newest snapshot's.

        A second snapshot at the same offset has no effect: the first one keeps its state.
        """
        if self._newest is not None:
            assert offset >= self._newest.offset, f"snapshot {offset} is older than {self._newest.offset}"
            if offset == self._newest.offset:
                return
        self._newest = _Snapshot(offset)
        self._snapshots.append(self._newest)

    def revert_to(self, offset: int) -> None:
        """Revert everything to the snapshot at exactly this offset, and drop the later ones."""
        index = bisect_left(self._snapshots, offset, key=_offset_of)
        assert [s.offset for s in self._snapshots[index : index + 1]] == [offset], f"no snapshot at {offset}"
        for snapshot in reversed(self._snapshots[index:]):
            for owner, notebook in snapshot.notebooks.items():
                owner._put_back(notebook)
        del self._snapshots[index:]
        self._newest = _Snapshot(offset)
        self._snapshots.append(self._newest)

    def delete_snapshots_below(self, offset: int) -> None:
        """Drop the snapshots that are not needed to read as of ``offset`` or later."""
        keep_from = bisect_right(self._snapshots, offset, key=_offset_of) - 1
        if keep_from > 0:
            del self._snapshots[:keep_from]

    def _from(self, offset: int) -> list[_Snapshot]:
        """The newest snapshot at or below ``offset`` and all later ones."""
        index = bisect_right(self._snapshots, offset, key=_offset_of) - 1
        if index < 0:
            raise LookupError(f"no snapshot at or below {offset}")
        return self._snapshots[index:]


class TimelineDict(_Owner, MutableMapping[K, V]):
    """A dict of the current state; the ``_at`` methods read as of the newest snapshot at or below an offset."""

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
        """The value as of an offset. Raises LookupError when there is no snapshot as old."""
        for notebook in self._notebooks_from(offset):
            if key in notebook:
                old = notebook[key]
                return default if old is _MISSING else old
        return self._present.get(key, default)

    def copy_at(self, offset: int) -> dict[K, V]:
        """A copy of the dict as of an offset. Raises LookupError when there is no snapshot as old."""
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
    """A single value with snapshots."""

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
        """The value as of an offset. Raises LookupError when there is no snapshot as old."""
        for notebook in self._notebooks_from(offset):
            old: V = notebook[None]
            return old
        return self._present

    def _put_back(self, notebook: dict[Any, Any]) -> None:
        self._present = notebook[None]

    def __repr__(self) -> str:
        return f"TimelineValue({self._present!r})"
