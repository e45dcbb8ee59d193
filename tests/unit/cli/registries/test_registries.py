"""The commands for a registry: what they print, what they change, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

pytest.importorskip("starlette")
pytest.importorskip("google.protobuf")
pytest.importorskip("jsonschema_rs")

from millbeck.cli.commands.registry import command
from millbeck.cli.registries.directory import DirectoryError, read
from millbeck.cli.registries.repairing import NO_ID, NO_REFERENCE, NO_SCHEMA, Scan
from millbeck.client.schemas import transport
from millbeck.client.schemas.errors import SchemaError
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.client.schemas.wire_format import framed, guid_header
from millbeck.kernel.ids import TopicPartition
from millbeck.records.schema_validation import VALUE_HEADER
from tests.unit.registry.rest.in_memory import Client

ORDER: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}
NOTED = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
BROKEN = {**ORDER, "fields": [*ORDER["fields"], {"name": "sum", "type": "double"}]}
CUSTOMER = {"type": "record", "name": "Customer", "namespace": "shop", "fields": [{"name": "name", "type": "string"}]}
SALE = {"type": "record", "name": "Sale", "namespace": "shop", "fields": [{"name": "by", "type": "Customer"}]}


class Registries:
    """Registries by their URLs, and the command line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_url = {"http://127.0.0.1:8081": Client(), "http://other:8081": Client()}
        monkeypatch.setattr(transport.Transport, "_asked", self._answered(self.by_url))

    @staticmethod
    def _answered(by_url: dict[str, Client]) -> Any:
        def asked(self: transport.Transport, method: str, target: str, content: bytes | None) -> tuple[int, bytes]:
            if self.name not in by_url:
                raise SchemaError("no schema registry answers: check schema.registry.url")
            found = by_url[self.name](method, target, content)
            return found.status, found.body

        return asked

    def get(self, target: str, url: str = "http://127.0.0.1:8081") -> Any:
        return self.by_url[url]("GET", target).json

    def run(self, *arguments: str | Path) -> Result:
        return CliRunner().invoke(command, [str(each) for each in arguments])


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> Registries:
    monkeypatch.delenv("SCHEMA_REGISTRY_URL", raising=False)
    return Registries(monkeypatch)


def written(folder: Path, **files: Any) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_avsc", ".avsc").replace("_proto", ".proto").replace(
            "_json", ".json"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def test_a_schema_is_registered_shown_checked_and_deleted(registries: Registries, tmp_path: Path) -> None:
    written(tmp_path, order_avsc=ORDER, noted_avsc=NOTED, broken_avsc=BROKEN)
    assert (
        registries.run("schema", "register", "orders-value", tmp_path / "order.avsc").output
        == "orders-value: id 1, version 1\n"
    )
    assert registries.run("schema", "check", "orders-value", tmp_path / "noted.avsc").output == "compatible\n"
    refused = registries.run("schema", "check", "orders-value", tmp_path / "broken.avsc")
    assert (refused.exit_code, "READER_FIELD_MISSING_DEFAULT_VALUE" in refused.output) == (1, True)
    assert json.loads(registries.run("schema", "get", "1").output) == ORDER
    assert json.loads(registries.run("schema", "get", "orders-value").output) == ORDER
    assert "orders-value" in registries.run("subject", "list").output
    shown = registries.run("subject", "show", "orders-value", "-o", "json").output
    assert json.loads(shown) == [{"version": 1, "id": 1, "type": "AVRO", "references": "-"}]
    assert registries.run("subject", "delete", "orders-value").output == "soft-deleted: orders-value:1\n"
    gone = registries.run("subject", "delete", "orders-value", "--permanent")
    assert gone.output == "permanently deleted: orders-value:1\n"


def test_levels_modes_and_contexts_are_set(registries: Registries) -> None:
    assert registries.run("compat", "get").output == "BACKWARD\n"
    assert registries.run("compat", "set", "full", "a", "--policy", "lenient").output == "a: FULL\n"
    assert registries.run("compat", "get", "a").output == "FULL (LENIENT)\n"
    assert registries.run("compat", "unset", "a").exit_code == 0
    assert registries.run("compat", "get", "a").output == "BACKWARD\n"
    assert registries.run("mode", "set", "readonly", "a").output == "a: READONLY\n"
    assert registries.run("mode", "get", "a").output == "READONLY\n"
    assert registries.run("mode", "unset", "a").exit_code == 0
    assert registries.run("mode", "get", "a").output == "READWRITE\n"
    assert registries.run("context", "list").exit_code == 0


def test_errors_are_the_registrys_own(registries: Registries, tmp_path: Path) -> None:
    assert "Subject 'x' not found" in registries.run("schema", "get", "x").output
    assert "Valid values are" in registries.run("compat", "set", "MOST").output
    down = registries.run("subject", "list", "--url", "http://nowhere:1")
    assert (down.exit_code, "check schema.registry.url" in down.output) == (1, True)
    written(tmp_path, order_avsc=ORDER)
    wrong = registries.run("schema", "register", "a", tmp_path / "order.avsc", "--reference", "x")
    assert (wrong.exit_code, "NAME=SUBJECT:VERSION" in wrong.output) == (2, True)


def test_a_directory_is_applied_in_the_order_of_its_references(registries: Registries, tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        a_sale_avsc=SALE,
        z_customer_avsc=CUSTOMER,
        order_proto='syntax = "proto3"; package shop; import "shop/line.proto"; message Order { Line line = 1; }',
        shop__line_proto='syntax = "proto3"; package shop; message Line { int32 n = 1; }',
        doc_json={"type": "object", "properties": {"inner": {"$ref": "inner.json#/definitions/x"}}},
        inner_json={"definitions": {"x": {"type": "string"}}},
    )
    dry = registries.run("apply", folder, "--dry-run")
    assert (dry.exit_code, registries.get("/subjects")) == (0, []), dry.output
    assert "register    a_sale (checked once z_customer is registered)" in dry.output
    applied = registries.run("apply", folder)
    assert applied.exit_code == 0, applied.output
    assert registries.get("/subjects") == ["a_sale", "doc", "inner", "order", "shop/line", "z_customer"]
    sale = registries.get("/subjects/a_sale/versions/1")
    assert sale["references"] == [{"name": "shop.Customer", "subject": "z_customer", "version": 1}]
    again = registries.run("apply", folder)
    assert again.output.count("unchanged") == 6
    assert "registered" not in again.output


def test_nothing_is_applied_if_one_schema_is_refused(registries: Registries, tmp_path: Path) -> None:
    registries.run("apply", written(tmp_path / "one", orders_avsc=ORDER))
    refused = registries.run("apply", written(tmp_path / "two", orders_avsc=BROKEN, other_avsc=ORDER))
    assert refused.exit_code == 1
    assert "refused     orders" in refused.output
    assert "1 of 2 schemas would be refused; nothing was changed" in refused.output
    assert registries.get("/subjects") == ["orders"]


def test_what_the_directory_does_not_have_is_pruned_when_asked(registries: Registries, tmp_path: Path) -> None:
    registries.run("apply", written(tmp_path / "one", orders_avsc=ORDER, old_avsc=CUSTOMER))
    folder = written(tmp_path / "two", orders_avsc=NOTED)
    assert "delete      old" in registries.run("apply", folder, "--prune", "--dry-run").output
    assert registries.get("/subjects") == ["old", "orders"]
    assert registries.run("apply", folder, "--prune").exit_code == 0
    assert registries.get("/subjects") == ["orders"]
    assert registries.get("/subjects?deleted=true") == ["old", "orders"]


def test_files_in_a_circle_are_refused(tmp_path: Path) -> None:
    written(tmp_path, a_proto='import "b.proto";', b_proto='import "a.proto";')
    with pytest.raises(DirectoryError, match="a → b → a"):
        read(tmp_path)


def test_files_are_checked_without_a_registry(registries: Registries, tmp_path: Path) -> None:
    registries.by_url.clear()
    folder = written(tmp_path, sale_avsc=SALE, customer_avsc=CUSTOMER, doc_json={"type": "string"})
    assert registries.run("lint", folder).output == "valid\n"
    written(tmp_path, wrong_json={"type": "strin"}, broken_proto="message M {")
    failed = registries.run("lint", folder)
    assert failed.exit_code == 1
    assert "wrong.json: Invalid schema" in failed.output
    assert "broken.proto: Invalid schema: schema.proto:1" in failed.output


def test_two_files_are_compared(registries: Registries, tmp_path: Path) -> None:
    written(tmp_path, old_avsc=ORDER, new_avsc=BROKEN, other_avsc={**ORDER, "fields": [{"name": "id", "type": "int"}]})
    one_way = registries.run("diff", tmp_path / "old.avsc", tmp_path / "new.avsc")
    assert one_way.exit_code == 0
    assert "BACKWARD: not compatible\n  READER_FIELD_MISSING_DEFAULT_VALUE at /fields/1" in one_way.output
    assert "FORWARD: compatible" in one_way.output
    assert registries.run("diff", tmp_path / "old.avsc", tmp_path / "other.avsc").exit_code == 1


def filled(registries: Registries, folder: Path) -> None:
    registries.run("apply", written(folder, sale_avsc=SALE, zcustomer_avsc=CUSTOMER, orders_avsc=ORDER))
    registries.run("apply", written(folder, orders_avsc=NOTED))
    registries.run("subject", "delete", "orders", "--version", "1")
    registries.run("compat", "set", "NONE", "orders")
    registries.run("mode", "set", "READONLY", "sale")
    first = registries.by_url["http://127.0.0.1:8081"]
    first("POST", "/subjects/:.lab:x/versions", {"schema": '"string"'})


def same(registries: Registries) -> None:
    for target in (
        "/schemas?subjectPrefix=:*:&deleted=true",
        "/subjects/orders/versions?deletedAsNegative=true",
        "/config/orders",
        "/mode/sale",
        "/contexts",
    ):
        assert registries.get(target, "http://other:8081") == registries.get(target)


def test_everything_is_copied_with_its_ids(registries: Registries, tmp_path: Path) -> None:
    filled(registries, tmp_path)
    copied = registries.run("copy", "--from", "http://127.0.0.1:8081", "--url", "http://other:8081")
    assert copied.output == "copied 5 versions\n", copied.output
    same(registries)
    assert registries.run("copy", "--from", "http://127.0.0.1:8081", "--url", "http://other:8081").exit_code == 0
    same(registries)


def test_what_is_exported_is_imported(registries: Registries, tmp_path: Path) -> None:
    filled(registries, tmp_path / "schemas")
    file = tmp_path / "all.jsonl"
    assert registries.run("export", file).exit_code == 0
    assert registries.run("import", file, "--url", "http://other:8081").output == "imported 5 versions\n"
    same(registries)
    file.write_text('{"some": "thing"}\n')
    assert "was not written by millbeck registry export" in registries.run("import", file).output


def test_a_lost_schema_is_restored_under_its_id(registries: Registries, tmp_path: Path) -> None:
    written(tmp_path, order_avsc=ORDER, noted_avsc=NOTED)
    registries.run("schema", "register", "orders-value", tmp_path / "order.avsc")
    registries.run("mode", "set", "READONLY", "orders-value")
    restored = registries.run("repair", "--id", "7", "--subject", "orders-value", "--file", tmp_path / "noted.avsc")
    assert restored.output == "restored: orders-value, id 7\n"
    assert json.loads(registries.get("/schemas/ids/7")["schema"]) == NOTED
    assert registries.get("/mode/orders-value") == {"mode": "READONLY"}
    again = registries.run("repair", "--id", "7", "--subject", "b", "--file", tmp_path / "order.avsc")
    assert (again.exit_code, "Overwrite new schema with id 7" in again.output) == (1, True)
    assert registries.run("repair", "--id", "7").exit_code == 2
    assert registries.run("repair").output == "no problems\n"


def test_schemas_that_refer_to_nothing_are_listed(registries: Registries) -> None:
    client = registries.by_url["http://127.0.0.1:8081"]
    client.register("customer", CUSTOMER)
    client.register("sale", SALE, references=[{"name": "shop.Customer", "subject": "customer", "version": 1}])
    for target in ("/subjects/sale", "/subjects/customer", "/subjects/customer?permanent=true"):
        client("DELETE", target)
    found = registries.run("repair", "-o", "json")
    (row,) = json.loads(found.output)
    assert found.exit_code == 1
    assert (row["problem"], row["where"], row["id"]) == (NO_REFERENCE, "sale version 1: customer version 1", 2)


def test_records_without_their_schema_are_found(registries: Registries) -> None:
    client = registries.by_url["http://127.0.0.1:8081"]
    guid = client.register("orders-value", ORDER).json["guid"]
    marked = (VALUE_HEADER, guid_header(guid))
    scan, place = Scan(), TopicPartition("orders", 3)
    for offset, (value, headers) in enumerate(
        (
            (framed(1, b"x"), ()),
            (framed(9, b"x"), ()),
            (framed(9, b"y"), ()),
            (b"plain", ()),
            (b"plain", (marked,)),
            (b"plain", ((VALUE_HEADER, guid_header("0" * 32)),)),
            (None, ()),
        )
    ):
        scan.look(place, offset, {"key": b"k", "value": value}, headers)
    registry = RegistryClient({"schema.registry.url": "http://127.0.0.1:8081"})
    assert [(each["problem"], each["id"], each["records"], each["first"]) for each in scan.problems(registry)] == [
        (NO_SCHEMA, 9, 2, "orders-3@1"),
        (NO_ID, None, 1, "orders-3@3"),
        (NO_SCHEMA, "00000000-0000-0000-0000-000000000000", 1, "orders-3@5"),
    ]


def test_versions_of_a_subject_with_an_alias_are_its_own_when_imported(registries: Registries, tmp_path: Path) -> None:
    client = registries.by_url["http://127.0.0.1:8081"]
    client.register("a", ORDER)
    client("PUT", "/config/a", {"alias": "b"})
    assert registries.run("export", tmp_path / "all.jsonl").exit_code == 0
    other = ("--url", "http://other:8081")
    assert registries.run("import", tmp_path / "all.jsonl", *other).output == "imported 1 versions\n"
    assert registries.get("/subjects", other[1]) == ["a"]
