"""Fetches the peers that peers.toml pins into a cache outside the tree, and says where they are.

A peer is a piece of software that millbeck is tested or measured against. The cache is $MILLBECK_PEERS, or
~/.cache/millbeck/peers. Each peer has a directory named after its version, written beside and renamed into place, so
that a broken fetch leaves nothing that looks installed. The drivers of the interop suite (Java, Go, JavaScript) are
built here too, from their sources under tests/interop, and rebuilt when the source changes.

Nothing here is needed to run millbeck. A registry or a tool that cannot be reached raises `PeerUnavailable`, whose text
says what is missing; callers print it and go on without that peer.

Usage: python -m tools.peers install [NAME ...] | path NAME | status
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
INTEROP = ROOT / "tests" / "interop"
FETCH_TIMEOUT_S = 600


class PeerUnavailable(Exception):
    """A peer is not installed and cannot be, or was not asked to be; the text names what is missing."""


def pins() -> dict[str, dict[str, Any]]:
    """The content of peers.toml: one table per peer."""
    return tomllib.loads((ROOT / "peers.toml").read_text())


def cache_directory() -> Path:
    configured = os.environ.get("MILLBECK_PEERS")
    return Path(configured) if configured else Path.home() / ".cache" / "millbeck" / "peers"


def peer_path(name: str) -> Path:
    """Where an installed peer lives: a directory of jars, a binary, or a script. Raises PeerUnavailable."""
    if name not in PEERS:
        raise PeerUnavailable(f"no peer is called {name}; known: {', '.join(PEERS)}")
    path = PEERS[name][0]()
    if not path.exists():
        raise PeerUnavailable(f"{name} is not installed: run `python -m tools.peers install {name}`")
    return path


def install(name: str) -> Path:
    """Fetch or build one peer unless it is there already. Raises PeerUnavailable."""
    if name not in PEERS:
        raise PeerUnavailable(f"no peer is called {name}; known: {', '.join(PEERS)}")
    path_of, build = PEERS[name]
    if not path_of().exists():
        build()
    return peer_path(name)


def _run(tool: str, *arguments: str, directory: Path, what: str) -> None:
    """Run a package manager or a compiler; its last words become the error's text."""
    executable = shutil.which(tool)
    if executable is None:
        raise PeerUnavailable(f"{what} needs `{tool}`, which is not on PATH")
    try:
        done = subprocess.run(
            [executable, *arguments],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FETCH_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise PeerUnavailable(
            f"{what}: `{tool}` gave no result in {FETCH_TIMEOUT_S} s; its registry may be out of reach"
        ) from None
    if done.returncode != 0:
        last_error_line = "\n  ".join(done.stdout.strip().splitlines()[-12:])
        raise PeerUnavailable(f"{what}: `{Path(tool).name}` failed; is its registry reachable?\n  {last_error_line}")


def _place(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a scratch directory, then rename it to its final name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{target.name}.partial-", dir=target.parent))
    try:
        fill(scratch)
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _source_digest(*paths: Path) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _kafka_path() -> Path:
    pin = pins()["kafka"]
    return cache_directory() / f"kafka_{pin['scala']}-{pin['version']}" / "lib"


def _pom(name: str, wanted: list[tuple[str, str, str]], *, is_exact: bool) -> str:
    """``is_exact``: the artifacts alone, without what they depend on."""
    nothing_else = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{nothing_else if is_exact else ''}</dependency>"
        for group, artifact, version in wanted
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>millbeck.peers</groupId><artifactId>{name}</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>\n"
    )


def _java_major() -> int:
    executable = shutil.which("java")
    if executable is None:
        raise PeerUnavailable("Apache Kafka needs `java`, which is not on PATH")
    text = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60).stderr
    match = re.search(r'version "(\d+)', text)
    if match is None:
        raise PeerUnavailable(f"cannot tell the version of `java` from: {text.strip()}")
    return int(match.group(1))


def _copy_jars(scratch: Path, name: str, wanted: list[tuple[str, str, str]], *, is_exact: bool, what: str) -> None:
    """Maven artifacts, with all that they need unless ``is_exact``, under ``scratch``/lib."""
    (scratch / "pom.xml").write_text(_pom(name, wanted, is_exact=is_exact))
    copy = ("dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib")
    _run("mvn", "-B", "-q", *copy, directory=scratch, what=what)


def _fetch_jars(target: Path, name: str, wanted: list[tuple[str, str, str]], jar: str) -> None:
    """Maven artifacts and all that they need, under ``target``/lib; ``jar`` must be among them."""
    pin = pins()["kafka"]
    if _java_major() < pin["java_min"]:
        raise PeerUnavailable(
            f"Apache Kafka {pin['version']} needs Java {pin['java_min']} or newer, found {_java_major()}"
        )

    def fill(scratch: Path) -> None:
        _copy_jars(scratch, name, wanted, is_exact=False, what=f"{name} {pin['version']} from Maven Central")
        if not list((scratch / "lib").glob(jar)):
            raise PeerUnavailable(f"Maven ended well but brought no {jar}")

    _place(target, fill)


def _build_kafka() -> None:
    pin = pins()["kafka"]
    wanted = [
        ("org.apache.kafka", f"kafka_{pin['scala']}", pin["version"]),
        ("org.apache.kafka", "kafka-tools", pin["version"]),
        ("org.slf4j", "slf4j-simple", pin["slf4j"]),
    ]
    _fetch_jars(_kafka_path().parent, "kafka", wanted, "kafka_*.jar")


def _kafka_streams_path() -> Path:
    return cache_directory() / f"kafka-streams-{pins()['kafka']['version']}" / "lib"


def _build_kafka_streams() -> None:
    pin = pins()["kafka"]
    wanted = [
        ("org.apache.kafka", "kafka-streams", pin["version"]),
        ("org.slf4j", "slf4j-simple", pin["slf4j"]),
    ]
    _fetch_jars(_kafka_streams_path().parent, "kafka-streams", wanted, "kafka-streams-*.jar")


def _kafka_connect_path() -> Path:
    return cache_directory() / f"kafka-connect-{pins()['kafka']['version']}" / "lib"


def _build_kafka_connect() -> None:
    pin = pins()["kafka"]
    artifacts = ("connect-runtime", "connect-transforms", "connect-json", "connect-file")
    wanted = [("org.apache.kafka", artifact, pin["version"]) for artifact in artifacts]
    wanted.append(("org.slf4j", "slf4j-simple", pin["slf4j"]))
    _fetch_jars(_kafka_connect_path().parent, "kafka-connect", wanted, "connect-runtime-*.jar")


def _java_driver_source() -> Path:
    return INTEROP / "java" / "Driver.java"


def _java_driver_path() -> Path:
    digest = _source_digest(_java_driver_source())
    return cache_directory() / f"java-driver-{pins()['kafka']['version']}-{digest}"


def _build_java_driver() -> None:
    lib = install("kafka")

    def fill(scratch: Path) -> None:
        source = str(_java_driver_source())
        _run("javac", "-cp", f"{lib}/*", "-d", str(scratch), source, directory=scratch, what="the Java driver")

    _place(_java_driver_path(), fill)


def _go_source() -> Path:
    return INTEROP / "go" / "main.go"


def _go_driver_path() -> Path:
    return cache_directory() / f"franz-go-{pins()['franz-go']['version']}-{_source_digest(_go_source())}" / "driver"


def _build_go_driver() -> None:
    pin = pins()["franz-go"]

    def fill(scratch: Path) -> None:
        shutil.copy(_go_source(), scratch / "main.go")
        (scratch / "go.mod").write_text(
            f"module driver\n\ngo {pin['go_min']}\n\nrequire (\n"
            f"\tgithub.com/twmb/franz-go {pin['version']}\n"
            f"\tgithub.com/twmb/franz-go/pkg/kadm {pin['kadm']}\n"
            f"\tgithub.com/twmb/franz-go/pkg/kmsg {pin['kmsg']}\n)\n"
        )
        _run("go", "mod", "tidy", directory=scratch, what=f"franz-go {pin['version']}")
        _run("go", "build", "-o", "driver", ".", directory=scratch, what="the Go driver")

    _place(_go_driver_path().parent, fill)


def _go_suite_path() -> Path:
    return cache_directory() / f"franz-go-suite-{pins()['franz-go']['version']}" / "kgo.test"


def _build_go_suite() -> None:
    """The client's own integration tests, from the module as it was published; some read their package's source."""
    pin = pins()["franz-go"]
    package = "github.com/twmb/franz-go/pkg/kgo"

    def fill(scratch: Path) -> None:
        # A module that imports the package takes its dependencies from it, and the tests' with them.
        (scratch / "suite.go").write_text(f'package suite\n\nimport _ "{package}"\n')
        (scratch / "go.mod").write_text(
            f"module suite\n\ngo {pin['go_min']}\n\nrequire github.com/twmb/franz-go {pin['version']}\n"
        )
        _run("go", "mod", "tidy", directory=scratch, what=f"franz-go {pin['version']}")
        _run("go", "mod", "vendor", directory=scratch, what=f"the source of franz-go {pin['version']}")
        _run("go", "test", "-c", "-mod=mod", "-o", "kgo.test", package, directory=scratch, what="franz-go's own tests")

    _place(_go_suite_path().parent, fill)


def _js_source() -> Path:
    return INTEROP / "js" / "driver.js"


def _js_driver_path() -> Path:
    return cache_directory() / f"kafkajs-{pins()['kafkajs']['version']}-{_source_digest(_js_source())}" / "driver.js"


def _build_js_driver() -> None:
    pin = pins()["kafkajs"]

    def fill(scratch: Path) -> None:
        shutil.copy(_js_source(), scratch / "driver.js")
        package = {
            "name": "millbeck-interop-driver",
            "private": True,
            "dependencies": {"kafkajs": pin["version"], "kafkajs-snappy": pin["snappy"]},
        }
        (scratch / "package.json").write_text(json.dumps(package))
        _run("npm", "install", "--no-audit", "--no-fund", directory=scratch, what=f"kafkajs {pin['version']}")

    _place(_js_driver_path().parent, fill)


def _oidc_provider_source() -> Path:
    return INTEROP / "js" / "identity_provider.js"


def _oidc_provider_path() -> Path:
    digest = _source_digest(_oidc_provider_source())
    return cache_directory() / f"oidc-provider-{pins()['oidc-provider']['version']}-{digest}" / "identity_provider.js"


def _build_oidc_provider() -> None:
    version = pins()["oidc-provider"]["version"]

    def fill(scratch: Path) -> None:
        shutil.copy(_oidc_provider_source(), scratch / "identity_provider.js")
        package = {
            "name": "millbeck-identity-provider",
            "private": True,
            "type": "module",
            "dependencies": {"oidc-provider": version},
        }
        (scratch / "package.json").write_text(json.dumps(package))
        _run("npm", "install", "--no-audit", "--no-fund", directory=scratch, what=f"oidc-provider {version}")

    _place(_oidc_provider_path().parent, fill)


def _registry_js_source() -> Path:
    return INTEROP / "registries" / "clients.js"


def _registry_js_path() -> Path:
    versions = "-".join(pins()["registry-js"].values())
    return cache_directory() / f"registry-js-{versions}-{_source_digest(_registry_js_source())}" / "clients.js"


def _build_registry_js() -> None:
    pin = pins()["registry-js"]

    def fill(scratch: Path) -> None:
        shutil.copy(_registry_js_source(), scratch / "clients.js")
        wanted = {
            "@confluentinc/schemaregistry": pin["confluent"],
            "@kafkajs/confluent-schema-registry": pin["kafkajs"],
        }
        package = {"name": "millbeck-interop-registries", "private": True, "dependencies": wanted}
        (scratch / "package.json").write_text(json.dumps(package))
        install = ("install", "--no-audit", "--no-fund", "--ignore-scripts")
        _run("npm", *install, directory=scratch, what="the registry clients of npm")

    _place(_registry_js_path().parent, fill)


def _registry_go_source() -> Path:
    return INTEROP / "registries" / "main.go"


def _registry_go_path() -> Path:
    digest = _source_digest(_registry_go_source())
    return cache_directory() / f"registry-go-{pins()['registry-go']['sr']}-{digest}" / "clients"


def _build_registry_go() -> None:
    pin = pins()["registry-go"]

    def fill(scratch: Path) -> None:
        shutil.copy(_registry_go_source(), scratch / "main.go")
        (scratch / "go.mod").write_text(
            f"module registries\n\ngo {pin['go_min']}\n\nrequire github.com/twmb/franz-go/pkg/sr {pin['sr']}\n"
        )
        _run("go", "mod", "tidy", directory=scratch, what=f"franz-go's registry client {pin['sr']}")
        _run("go", "build", "-o", "clients", ".", directory=scratch, what="the Go registry client")

    _place(_registry_go_path().parent, fill)


def _registry_confluent_go_source() -> Path:
    return INTEROP / "registries" / "confluent" / "main.go"


def _registry_confluent_go_path() -> Path:
    digest = _source_digest(_registry_confluent_go_source())
    return cache_directory() / f"registry-confluent-go-{pins()['registry-confluent-go']['client']}-{digest}" / "clients"


def _build_registry_confluent_go() -> None:
    pin = pins()["registry-confluent-go"]
    package = "github.com/confluentinc/confluent-kafka-go/v2"

    def fill(scratch: Path) -> None:
        shutil.copy(_registry_confluent_go_source(), scratch / "main.go")
        (scratch / "go.mod").write_text(f"module clients\n\ngo {pin['go_min']}\n\nrequire {package} {pin['client']}\n")
        _run("go", "mod", "tidy", directory=scratch, what=f"Confluent's client for Go {pin['client']}")
        _run("go", "build", "-o", "clients", ".", directory=scratch, what="the program of Confluent's client for Go")

    _place(_registry_confluent_go_path().parent, fill)


def _registry_rust_source() -> Path:
    return INTEROP / "registries" / "client.rs"


def _registry_rust_path() -> Path:
    digest = _source_digest(_registry_rust_source())
    return cache_directory() / f"registry-rust-{pins()['registry-rust']['converter']}-{digest}" / "clients"


def _build_registry_rust() -> None:
    pin = pins()["registry-rust"]
    features = '"avro", "json", "proto_raw", "blocking", "futures"'
    lines = [
        '[package]\nname = "clients"\nversion = "0.1.0"\nedition = "2021"\n',
        f'[dependencies]\napache-avro = "{pin["avro"]}"\nserde_json = "1"',
        f'schema_registry_converter = {{ version = "={pin["converter"]}", default-features = false, '
        f"features = [{features}] }}\n",
    ]

    def fill(scratch: Path) -> None:
        (scratch / "src").mkdir()
        shutil.copy(_registry_rust_source(), scratch / "src" / "main.rs")
        (scratch / "Cargo.toml").write_text("\n".join(lines))
        _run("cargo", "build", "-q", directory=scratch, what=f"schema_registry_converter {pin['converter']}")
        shutil.copy(scratch / "target" / "debug" / "clients", scratch / "clients")
        shutil.rmtree(scratch / "target")

    _place(_registry_rust_path().parent, fill)


def _kcat_path() -> Path:
    found = shutil.which("kcat")
    return Path(found) if found else Path("/usr/bin/kcat")


def _build_kcat() -> None:
    if os.geteuid() != 0:
        raise PeerUnavailable("kcat comes from the distribution: as root, `apt-get install kcat`")
    _run("apt-get", "install", "-y", "kcat", directory=Path("/"), what="kcat from the distribution's packages")


def _python_codecs_path() -> Path:
    named = "-".join(f"{name}-{version}" for name, version in pins()["python-codecs"].items())
    return cache_directory() / f"python-codecs-{sys.version_info.major}.{sys.version_info.minor}-{named}"


def _build_python_codecs() -> None:
    wanted = [f"{name}=={version}" for name, version in pins()["python-codecs"].items()]

    def fill(scratch: Path) -> None:
        pip = ["-m", "pip", "install", "-q", "--target", str(scratch)]
        _run(sys.executable, *pip, *wanted, directory=scratch, what="codecs for kafka-python")

    _place(_python_codecs_path(), fill)


def _faststream_path() -> Path:
    return cache_directory() / f"faststream-{sys.version_info.major}.{sys.version_info.minor}-{_version('faststream')}"


def _build_faststream() -> None:
    def fill(scratch: Path) -> None:
        pip = ["-m", "pip", "install", "-q", "--target", str(scratch)]
        wanted = f"faststream[kafka]=={_version('faststream')}"
        _run(sys.executable, *pip, wanted, directory=scratch, what="FastStream")

    _place(_faststream_path(), fill)


def _schemathesis_path() -> Path:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return cache_directory() / f"schemathesis-{python}-{_version('schemathesis')}"


def _build_schemathesis() -> None:
    def fill(scratch: Path) -> None:
        pip = ["-m", "pip", "install", "-q", "--target", str(scratch)]
        wanted = f"schemathesis=={_version('schemathesis')}"
        _run(sys.executable, *pip, wanted, directory=scratch, what="schemathesis")

    _place(_schemathesis_path(), fill)


def _aiokafka_source_path() -> Path:
    return cache_directory() / f"aiokafka-source-{_version('aiokafka-source')}"


def _build_aiokafka_source() -> None:
    def fill(scratch: Path) -> None:
        version = _version("aiokafka-source")
        pip = ["-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(scratch)]
        _run(sys.executable, *pip, f"aiokafka=={version}", directory=scratch, what="aiokafka's source")
        with tarfile.open(scratch / f"aiokafka-{version}.tar.gz") as archive:
            archive.extract(f"aiokafka-{version}/README.rst", scratch, filter="data")
        (scratch / f"aiokafka-{version}" / "README.rst").rename(scratch / "README.rst")

    _place(_aiokafka_source_path(), fill)


def _version(name: str) -> str:
    return str(pins()[name]["version"])


def _spark_connector_path() -> Path:
    return cache_directory() / f"spark-connector-{pins()['spark-connector']['version']}"


def _build_spark_connector() -> None:
    pinned = (artifact.split(":") for artifact in pins()["spark-connector"]["artifacts"])
    artifacts = [(group, artifact, version) for group, artifact, version in pinned]

    def fill(scratch: Path) -> None:
        _copy_jars(scratch, "spark-connector", artifacts, is_exact=True, what="Spark's Kafka connector")
        for jar in (scratch / "lib").glob("*.jar"):
            jar.rename(scratch / jar.name)

    _place(_spark_connector_path(), fill)


# Each peer: where it is when installed, and what installs it.
PEERS: dict[str, tuple[Callable[[], Path], Callable[[], None]]] = {
    "kafka": (_kafka_path, _build_kafka),
    "kafka-streams": (_kafka_streams_path, _build_kafka_streams),
    "kafka-connect": (_kafka_connect_path, _build_kafka_connect),
    "java-driver": (_java_driver_path, _build_java_driver),
    "franz-go": (_go_driver_path, _build_go_driver),
    "franz-go-suite": (_go_suite_path, _build_go_suite),
    "kafkajs": (_js_driver_path, _build_js_driver),
    "oidc-provider": (_oidc_provider_path, _build_oidc_provider),
    "kcat": (_kcat_path, _build_kcat),
    "python-codecs": (_python_codecs_path, _build_python_codecs),
    "faststream": (_faststream_path, _build_faststream),
    "aiokafka-source": (_aiokafka_source_path, _build_aiokafka_source),
    "registry-go": (_registry_go_path, _build_registry_go),
    "registry-confluent-go": (_registry_confluent_go_path, _build_registry_confluent_go),
    "registry-js": (_registry_js_path, _build_registry_js),
    "registry-rust": (_registry_rust_path, _build_registry_rust),
    "schemathesis": (_schemathesis_path, _build_schemathesis),
    "spark-connector": (_spark_connector_path, _build_spark_connector),
}


def python_pins_that_differ() -> dict[str, str]:
    """Python clients whose installed version is not the pinned one, with what was found."""
    different = {}
    for name, wanted in pins()["python"].items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = "not installed"
        if found != wanted:
            different[name] = found
    return different


def status() -> list[str]:
    """One line per peer."""
    lines = []
    for name in PEERS:
        version = pins().get(name.removesuffix("-suite"), pins()["kafka"]).get("version", "")
        try:
            lines.append(f"{name:16} {version:10} {peer_path(name)}")
        except PeerUnavailable as missing:
            lines.append(f"{name:16} {version:10} missing: {missing}")
    different = python_pins_that_differ()
    for name, version in pins()["python"].items():
        lines.append(f"{name:16} {version:10} {different.get(name, 'installed')}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.peers", description="Fetch and find the pinned peers.")
    commands = parser.add_subparsers(dest="command", required=True)
    installing = commands.add_parser("install", help="fetch or build peers; all of them when none is named")
    installing.add_argument("names", nargs="*")
    commands.add_parser("path", help="print where a peer is").add_argument("name")
    commands.add_parser("status", help="list the peers, their versions and whether they are here")
    chosen = parser.parse_args()
    failed = False
    if chosen.command == "status":
        print("\n".join(status()))
    elif chosen.command == "path":
        try:
            print(peer_path(chosen.name))
        except PeerUnavailable as missing:
            print(f"peers: {missing}", file=sys.stderr)
            failed = True
    else:
        for name in chosen.names or PEERS:
            try:
                print(f"{name}: {install(name)}", flush=True)
            except PeerUnavailable as missing:
                print(f"peers: {missing}", file=sys.stderr, flush=True)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
