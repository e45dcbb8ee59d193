"""Registry clients of other languages, unmodified, with the registry: what each registers, writes and is refused.

Python's are in `tests/e2e/test_registry_clients.py`.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from millbeck.client.schemas.avro import AvroSerde
from millbeck.client.schemas.json_schema import JsonSchemaSerde
from millbeck.client.schemas.protobuf import ProtobufSerde
from millbeck.client.schemas.protoc import compiled
from millbeck.testing import broker, registry
from tools import peers

SECONDS = 100.0
PROTO = 'syntax = "proto3";\npackage shop;\nmessage Order {\n  string id = 1;\n  int32 n = 2;\n}\n'
VALUE = {"id": "abcdef", "n": 7}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with broker() as running, registry(running.bootstrap) as address:
        yield address


def seen_by(peer: str, *arguments: str, runner: tuple[str, ...] = ()) -> Any:
    """What the peer's program prints."""
    try:
        path = peers.install(peer)
    except peers.PeerUnavailable as missing:
        if os.environ.get("INTEROP_ALLOW_MISSING") == "1":
            pytest.skip(str(missing))
        raise
    done = subprocess.run([*runner, str(path), *arguments], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def javascript(url: str) -> Any:
    descriptors = base64.b64encode(compiled(PROTO)).decode()
    return seen_by("registry-js", url, descriptors, runner=("node",))


def test_confluents_client_for_javascript(javascript: Any, url: str) -> None:
    seen, settings = javascript["confluent"], {"schema.registry.url": url}
    assert seen["first"] == seen["again"]
    assert (seen["compatible"], seen["incompatible"], seen["levelRead"]) == (True, False, "FULL")
    assert (seen["refused"]["code"], seen["missing"]["code"]) == (409, 40401)
    assert "TYPE_MISMATCH" in seen["refused"]["message"]
    assert seen["avro"] == seen["json"] == seen["proto"] == VALUE
    assert seen["jsonRefused"] is not None
    assert AvroSerde(settings).deserialize("js-avro", bytes.fromhex(seen["avroRecord"]), []) == VALUE
    message = ProtobufSerde(settings).deserialize("js-proto", bytes.fromhex(seen["protoRecord"]), [])
    assert message.SerializeToString().hex() == seen["protoSame"]
    assert JsonSchemaSerde(settings).deserialize("js-json", bytes.fromhex(seen["jsonRecord"]), []) == VALUE
    assert (seen["versions"], seen["deleted"]) == ([1], [1])


def test_the_registry_client_of_kafkajs(javascript: Any, url: str) -> None:
    """It writes Protobuf records without message indexes, which is its way; it reads them itself."""
    seen = javascript["kafkajs"]
    assert seen["avroId"] == seen["latest"] == seen["id"]
    assert seen["avro"] == seen["json"] == seen["proto"] == VALUE
    assert (seen["refused"]["status"], seen["missing"]["status"]) == (409, 404)
    record = bytes.fromhex(seen["avroRecord"])
    assert AvroSerde({"schema.registry.url": url}).deserialize("kjs-avro", record, []) == VALUE


def test_the_registry_client_of_franz_go(url: str) -> None:
    seen = seen_by("registry-go", url)
    assert sorted(seen["types"]) == ["AVRO", "JSON", "PROTOBUF"]
    assert (seen["same"], seen["lookup"], seen["compatible"], seen["text"]) == (True, 1, True, True)
    assert seen["incompatible"][0].startswith("{errorType:'TYPE_MISMATCH'")
    assert (seen["refused"], seen["missing"]) == (409, 40401)
    assert (seen["references"], seen["wider"], seen["versions"]) == (1, 2, [1, 2])
    assert (seen["level"], seen["globalLevel"], seen["mode"]) == ("FULL_TRANSITIVE", "BACKWARD", "READWRITE")
    assert seen["subjects"] == ["go-avro-value", "go-json-value", "go-proto-value"]
    assert (seen["deleted"], seen["gone"]) == ([1, 2], [1, 2])


def test_confluents_client_for_go(url: str) -> None:
    seen, settings = seen_by("registry-confluent-go", url), {"schema.registry.url": url}
    assert (seen["same"], seen["byGUID"], seen["withMetadata"]) == (True, True, 1)
    assert (seen["compatible"], seen["incompatible"]) == (True, False)
    assert (seen["refused"], seen["missing"]) == (409, 40401)
    assert seen["usages"] == [{"subject": "cgo-avro-value", "version": 1}]
    assert (seen["level"], seen["levelRead"], seen["config"]) == ("FULL_TRANSITIVE", "FULL_TRANSITIVE", True)
    assert seen["avro"] == seen["json"] == VALUE
    assert AvroSerde(settings).deserialize("cgo-avro", bytes.fromhex(seen["avroRecord"]), []) == VALUE
    assert JsonSchemaSerde(settings).deserialize("cgo-json", bytes.fromhex(seen["jsonRecord"]), []) == VALUE
    assert seen["jsonRefused"] is True
    assert seen["proto"] == "abcdef"
    assert ProtobufSerde(settings).deserialize("cgo-proto", bytes.fromhex(seen["protoRecord"]), []).value == "abcdef"
    assert "." in seen["contexts"]
    assert (seen["versions"], seen["deleted"], seen["gone"]) == ([1], [1], [1])


def test_the_registry_client_of_rust(url: str) -> None:
    seen, settings = seen_by("registry-rust", url), {"schema.registry.url": url}
    assert (seen["same"], seen["text"], seen["compatible"], seen["incompatible"]) == (True, True, True, False)
    assert "TYPE_MISMATCH" in seen["refused"]
    assert "40401" in seen["missing"]
    assert AvroSerde(settings).deserialize("rs-avro", bytes.fromhex(seen["avroRecord"]), []) == VALUE
    assert JsonSchemaSerde(settings).deserialize("rs-json", bytes.fromhex(seen["jsonRecord"]), []) == VALUE
    assert (seen["json"], seen["jsonRefused"], seen["references"], seen["versions"]) == (VALUE, True, 1, [1])
    message = ProtobufSerde(settings).deserialize("rs-proto", bytes.fromhex(seen["protoRecord"]), [])
    assert (message.DESCRIPTOR.full_name, message.id, seen["protoName"]) == ("shop.Order", "a", "shop.Order")
