"""Atomic replacement of small files: after a crash the file has either its old or its new content.

The new content is written to a ``.tmp`` file beside the old one, synced, renamed over it, and the directory is synced:
the rename alone would not survive a power failure. A leftover ``.tmp`` is never read; `recovery` and `directory`
remove it.
"""

from __future__ import annotations

from millbeck.kernel.environment import Files, OpenMode

TEMPORARY_SUFFIX = ".tmp"


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def make_directory_durably(files: Files, path: str) -> None:
    """Create a directory and its missing parents durably; do nothing when it exists."""
    missing = []
    while path != "/" and not files.exists(path):
        missing.append(path)
        path = parent_of(path)
    if missing:
        files.make_directory(missing[0])
        for created in reversed(missing):
            files.sync_directory(parent_of(created))


def replace_file(files: Files, path: str, content: bytes, *, is_private: bool = False) -> None:
    """Replace the content of ``path`` atomically and durably. Raises OSError; the old content stays until the
    rename. A private file can be read by its owner only.
    """
    temporary = path + TEMPORARY_SUFFIX
    if is_private and files.exists(temporary):
        files.unlink(temporary)  # it keeps the permissions that it has
    write_file(files, temporary, content, sync=True, is_private=is_private)
    files.rename(temporary, path)
    files.sync_directory(parent_of(path))


def write_file(files: Files, path: str, content: bytes, *, sync: bool, is_private: bool = False) -> None:
    """Create or overwrite ``path`` in place; not atomic."""
    file = files.open(path, OpenMode.WRITE_PRIVATE if is_private else OpenMode.WRITE)
    try:
        file.truncate(0)
        if content:
            file.write([content], 0)
        if sync:
            file.sync()
    finally:
        file.close()


def read_file(files: Files, path: str, size_bytes_max: int) -> bytes | None:
    """The whole content, or None when the file does not exist. Raises OSError when it is too large."""
    try:
        file = files.open(path, OpenMode.READ)
    except FileNotFoundError:
        return None
    try:
        content = file.read(size_bytes_max + 1, 0)
    finally:
        file.close()
    if len(content) > size_bytes_max:
        raise OSError(f"{path} is larger than {size_bytes_max} bytes")
    return content
