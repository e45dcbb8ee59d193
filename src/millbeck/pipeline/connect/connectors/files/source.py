"""``FileStreamSource``: the lines of a file, and those that are appended to it.

Its offset is a position in bytes, at the start of a line. A last line without its end is waited for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

from millbeck.pipeline.connect.connectors.declared import FILE_SOURCE, SettingProblem
from millbeck.pipeline.connect.connectors.interface import Plan, SourceConnector, SourcePositions, SourceShare
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, RetriableError
from millbeck.pipeline.connect.model.record import SourceRecord
from millbeck.pipeline.connect.model.schema import STRING_SCHEMA

SHARE_BYTES: Final = 8 * 1024 * 1024
LINE_BYTES_MAX: Final = 64 * 1024 * 1024
_POLL_SECONDS: Final = 0.5
_LONG_BYTES: Final = 2 * 1024 * 1024
_LINE_ENDS: Final = re.compile(rb"\r\n|\n|\r")


class FileSource(SourceConnector):
    declared = FILE_SOURCE

    def check(self) -> Iterable[SettingProblem]:
        path = self.values["file"]
        if path and os.path.isdir(path):
            yield SettingProblem("file", f"{path} is a directory: name a file")
        elif path and os.path.exists(path) and not os.access(path, os.R_OK):
            yield SettingProblem("file", f"{path} cannot be read: give the worker the right to")

    def start(self) -> None:
        if not self.values["file"]:
            raise ConfigError("file: name the file to read; tasks have no standard input")
        self._seen = (-1, -1)

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        path: str = self.values["file"]
        offset = positions.get({"filename": path})
        start = 0 if offset is None else int(offset["position"])
        try:
            size = os.stat(path).st_size
        except FileNotFoundError:
            # It may come.
            return Plan(again_s=_POLL_SECONDS)
        except PermissionError as error:
            raise ConfigError(f"file: {path} cannot be read: {error.strerror}") from error
        if size < start:
            raise RetriableError(f"{path} has {size} bytes, and reading goes on at {start}: was it truncated?")
        if size == start or self._seen == (start, size):
            return Plan(again_s=_POLL_SECONDS)
        self._seen = (start, size)
        end = min(size, start + SHARE_BYTES)
        share = SourceShare(payload=(start, end), is_long=end - start > _LONG_BYTES)
        return Plan(shares=(share,), again_s=0)

    def read(self, share: SourceShare) -> Iterator[SourceRecord]:
        path: str = self.values["file"]
        topic: str = self.values["topic"]
        partition = {"filename": path}
        start, end = share.payload
        with open(path, "rb") as file:
            file.seek(start)
            data = file.read(end - start)
            if _LINE_ENDS.search(data) is None:
                # A line that is longer than a share, if it has an end already.
                data += file.readline(LINE_BYTES_MAX)
                if len(data) >= LINE_BYTES_MAX:
                    raise ConnectError(f"{path}: the line at {start} is longer than {LINE_BYTES_MAX} bytes")
        position = start
        for line, length in lines_of(data):
            position += length
            yield SourceRecord(
                topic=topic,
                value_schema=STRING_SCHEMA,
                value=line.decode("utf-8", "replace"),
                source_partition=partition,
                source_offset={"position": position},
            )


def lines_of(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Complete lines without their ends, with their lengths. A carriage return at the end of the data may be the first
    half of a line end."""
    begin = 0
    for found in _LINE_ENDS.finditer(data):
        if found.end() == len(data) and found[0] == b"\r":
            return
        yield data[begin : found.start()], found.end() - begin
        begin = found.end()
