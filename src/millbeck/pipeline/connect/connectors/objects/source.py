"""The object-store source: the records of files that the sink has written, in their order in the log.

Files of a log partition are read in the order of the offsets in their names, whatever their folders are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    ConnectorContext,
    Plan,
    SourceConnector,
    SourceItem,
    SourcePositions,
    SourceShare,
)
from millbeck.pipeline.connect.connectors.objects.formats import FileFormat, format_of
from millbeck.pipeline.connect.connectors.objects.settings import OBJECT_SOURCE
from millbeck.pipeline.connect.connectors.objects.stores import ObjectFiles
from millbeck.pipeline.connect.errors import ConnectError
from millbeck.pipeline.connect.model.record import SourceRecord

_BYTES_MAX: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, order=True)
class StoredFile:
    """A file by the offset of its first record."""

    start: int
    path: str
    size: int = 0


class ObjectSource(SourceConnector):
    """Reads files."""

    declared = OBJECT_SOURCE

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._files: ObjectFiles | None = None
        self._format: FileFormat | None = None

    def files(self) -> ObjectFiles:
        if self._files is None:
            self._files = ObjectFiles(self.values)
        return self._files

    def check(self) -> Iterable[SettingProblem]:
        try:
            problem = self.files().problem()
        except ConnectError as error:
            problem = str(error)
        except Exception as error:  # the store's own checks of its settings
            problem = f"{type(error).__name__}: {error}"[:500]
        if problem is not None:
            yield SettingProblem("store.url" if self.values["store.url"] else "s3.bucket.name", problem)

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        groups = []
        has_more = False
        for (topic, partition), stored in sorted(self._stored().items()):
            offset = positions.get({"topic": topic, "partition": partition})
            after = (-1, "") if offset is None else (int(offset["start"]), str(offset["path"]))
            waiting = [each for each in sorted(stored) if (each.start, each.path) > after]
            chosen = self._chosen(waiting)
            has_more = has_more or len(chosen) < len(waiting)
            if chosen:
                groups.append((topic, partition, chosen))
        tasks = max(1, min(self.context.tasks_max, len(groups)))
        dealt = [tuple(groups[place::tasks]) for place in range(tasks)]
        return Plan(
            shares=tuple(SourceShare(payload=each, is_long=has_more) for each in dealt if each),
            again_s=0 if has_more else self.values["s3.poll.interval.ms"] / 1000,
        )

    def _chosen(self, waiting: list[StoredFile]) -> list[StoredFile]:
        found: list[StoredFile] = []
        size = 0
        for each in waiting[: self.values["share.files.max"]]:
            size += each.size
            if found and size > _BYTES_MAX:
                break
            found.append(each)
        return found

    def _stored(self) -> dict[tuple[str, int], list[StoredFile]]:
        files, delimiter = self.files(), re.escape(self.values["file.delim"])
        name = re.compile(rf"(?P<topic>.+){delimiter}(?P<partition>\d{{1,9}}){delimiter}(?P<start>\d{{1,19}})\.[^/]+")
        topics: tuple[str, ...] = tuple(self.values["topics"])
        found: dict[tuple[str, int], list[StoredFile]] = {}
        for folder in topics or ("",):
            for path, size in files.list(files.path(folder)):
                match = name.fullmatch(path.rpartition("/")[2])
                # A topic's name may be the beginning of another's.
                if match is None or (topics and match["topic"] not in topics):
                    continue
                place = (match["topic"], int(match["partition"]))
                found.setdefault(place, []).append(StoredFile(int(match["start"]), path, size))
        return {place: sorted(set(each)) for place, each in found.items()}

    def read(self, share: SourceShare) -> Iterator[SourceItem]:
        if self._format is None:
            self._format = format_of(self.values)
        keeps: bool = self.values["keep.partitions"]
        for topic, partition, stored in share.payload:
            for each in stored:
                content = self.files().get(each.path)
                for schema, value in self._format.records(content):
                    yield SourceRecord(
                        topic=topic,
                        partition=partition if keeps else None,
                        value_schema=schema,
                        value=value,
                        source_partition={"topic": topic, "partition": partition},
                        source_offset={"start": each.start, "path": each.path},
                    )
