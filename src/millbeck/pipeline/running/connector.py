"""The jars of Spark's Kafka connector, which real-time mode needs: found, or fetched once from a Maven repository.

They lie in ``~/.cache/millbeck/jars``, unless `MILLBECK_JARS` names another directory. `MILLBECK_MAVEN` is the address
of the repository. ``millbeck pipeline jars`` fetches them ahead of time, for images and for machines without a network.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from millbeck.pipeline.errors import ConnectorMissing

_NAMED_BY: Final = "spark-sql-kafka"
_ANSWER_SECONDS_MAX: Final = 30.0
_CHUNK_BYTES: Final = 1 << 16
_JAR_BYTES_MAX: Final = 64 << 20


class Artifact(NamedTuple):
    group: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"

    @property
    def path(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{self.file}"


ARTIFACTS: Final = (
    Artifact(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    ),
    Artifact(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Artifact(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.2",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    ),
    Artifact(
        "org.apache.commons",
        "commons-pool2",
        "2.13.1",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
)


def jars_directory(environ: Mapping[str, str] | None = None) -> Path:
    environ = os.environ if environ is None else environ
    named = environ.get("MILLBECK_JARS")
    return Path(named) if named else Path.home() / ".cache" / "millbeck" / "jars"


def has_connector(settings: Mapping[str, str]) -> bool:
    """Whether the user's Spark settings name the connector."""
    return any(_NAMED_BY in settings.get(name, "") for name in ("spark.jars", "spark.jars.packages"))


def connector_jars(
    report: Callable[[str], None],
    *,
    environ: Mapping[str, str] | None = None,
    artifacts: Sequence[Artifact] = ARTIFACTS,
) -> list[Path]:
    """Return the connector's jars, and fetch those that are missing; raises `ConnectorMissing`."""
    environ = os.environ if environ is None else environ
    folder = jars_directory(environ)
    missing = [artifact for artifact in artifacts if not (folder / artifact.file).is_file()]
    if missing:
        repository = environ.get("MILLBECK_MAVEN", "").rstrip("/")
        if not repository:
            coordinates = ",".join(f"{each.group}:{each.name}:{each.version}" for each in artifacts)
            raise ConnectorMissing(
                f"real-time mode needs Spark's Kafka connector, which is not in {folder}: set MILLBECK_MAVEN to the "
                "address of a Maven repository and run millbeck pipeline jars, or let Spark fetch it with the setting "
                f'spark = {{ "spark.jars.packages" = "{coordinates}" }}'
            )
        report(f"fetching Spark's Kafka connector into {folder}, once")
        for number, artifact in enumerate(missing, 1):
            size = _fetch(repository, artifact, folder)
            report(f"{artifact.file}: {size / 1e6:.1f} MB ({number} of {len(missing)})")
    return [folder / artifact.file for artifact in artifacts]


def _fetch(repository: str, artifact: Artifact, folder: Path) -> int:
    """Fetch one jar, and put it into the folder once its checksum is right; returns its size."""
    address = f"{repository}/{artifact.path}"
    digest, size = hashlib.sha256(), 0
    fresh = folder / f"{artifact.file}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with urlopen(address, timeout=_ANSWER_SECONDS_MAX) as answer, open(fresh, "wb") as jar:
            while chunk := answer.read(_CHUNK_BYTES):
                size += len(chunk)
                if size > _JAR_BYTES_MAX:
                    raise ConnectorMissing(f"{address} has more than {_JAR_BYTES_MAX >> 20} MB, which is no such jar")
                digest.update(chunk)
                jar.write(chunk)
        if digest.hexdigest() != artifact.sha256:
            raise ConnectorMissing(
                f"{address} is not {artifact.file}: its SHA-256 is {digest.hexdigest()}, not {artifact.sha256}"
            )
        fresh.replace(folder / artifact.file)
    except (URLError, OSError, ValueError) as error:
        raise ConnectorMissing(
            f"real-time mode needs Spark's Kafka connector, which is not in {folder}, and {address} cannot be fetched "
            f"({error}): run millbeck pipeline jars where it can be, and copy the directory, or name the jars in the "
            "setting spark.jars"
        ) from error
    finally:
        fresh.unlink(missing_ok=True)
    return size
