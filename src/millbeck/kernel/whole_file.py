"""Reads small files in one piece: keys, certificates, tokens. It blocks, so running nodes call it on a thread."""

from __future__ import annotations

from millbeck.kernel.environment import Files, OpenMode


def read_whole_file(files: Files, path: str, *, bytes_max: int) -> bytes:
    """The content of a file. Raises ``OSError``, also for one that is longer than ``bytes_max``, before anything is
    read."""
    file = files.open(path, OpenMode.READ)
    try:
        size = file.size()
        if size > bytes_max:
            raise OSError(f"it has {size} bytes, more than {bytes_max}")
        return file.read(size, 0) if size else b""
    finally:
        file.close()
