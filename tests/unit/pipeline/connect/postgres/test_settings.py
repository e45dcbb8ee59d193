"""Settings: defaults, what is refused, what contradicts itself."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.postgres.masks import masks_of
from millbeck.pipeline.connect.postgres.naming import Naming, adjusted, topic_name
from millbeck.pipeline.connect.postgres.options import POSTGRES_OPTIONS
from millbeck.pipeline.connect.postgres.tables import TableId
from tests.unit.pipeline.connect.postgres.messages import settings_of

CONFIG = {
    "name": "shop",
    "connector.class": "PostgresConnector",
    "database.hostname": "db",
    "database.user": "reader",
    "database.dbname": "shop",
    "topic.prefix": "shop",
}

WRONG = {
    "slot.name": ("Shop-1", "a-z"),
    "plugin.name": ("decoderbufs", "pgoutput"),
    "snapshot.mode": ("sometimes", "initial"),
    "table.include.list": ("public.(", "regex|missing|unterminated"),
    "message.key.columns": ("orders", "form"),
    "decimal.handling.mode": ("exact", "precise"),
    "time.precision.mode": ("structured", "adaptive"),
    "topic.prefix": ("a b", "letters"),
    "database.port": ("70000", "65535"),
    "skipped.operations": ("x", "none of"),
    "publication.autocreate.mode": ("no_tables", "all_tables"),
    "signal.enabled.channels": ("kafka", "only source"),
    "money.fraction.digits": ("-1", "at least"),
}


@pytest.mark.parametrize(("name", "case"), WRONG.items(), ids=WRONG.keys())
def test_wrong_values_are_refused_at_their_setting(name: str, case: tuple[str, str]) -> None:
    found = validated({**CONFIG, name: case[0]})
    errors = found.entry(name).value.errors
    assert errors
    assert any(word in errors[0] for word in case[1].split("|")), errors


def test_a_right_configuration_has_no_errors() -> None:
    assert not validated(CONFIG).errors


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"table.include.list": "a.b", "table.exclude.list": "a.c"}, "table.exclude.list"),
        ({"schema.include.list": "a", "schema.exclude.list": "b"}, "schema.exclude.list"),
        ({"signal.data.collection": "signals"}, "signal.data.collection"),
        ({"unavailable.value.placeholder": "hex:zz"}, "unavailable.value.placeholder"),
    ],
)
def test_contradictions_are_refused_at_a_setting(settings: dict[str, str], name: str) -> None:
    found = validated({**CONFIG, **settings})
    assert found.entry(name).value.errors


def test_debeziums_defaults() -> None:
    values = POSTGRES_OPTIONS.parse(CONFIG)
    assert (values["slot.name"], values["publication.name"]) == ("debezium", "dbz_publication")
    assert (values["snapshot.mode"], values["publication.autocreate.mode"]) == ("initial", "all_tables")
    assert values["skipped.operations"] == ("t",)


def test_topics() -> None:
    naming = Naming(prefix="shop")
    assert naming.topic(TableId("public", "orders")) == "shop.public.orders"
    assert naming.topic(TableId("public", "Bücher & mehr")) == "shop.public.B_cher___mehr"
    assert topic_name("..") == "__"
    assert len(topic_name("a" * 300)) == 249
    assert naming.heartbeat_topic == "__debezium-heartbeat.shop"
    assert naming.transaction_topic == "shop.transaction"


@pytest.mark.parametrize(
    ("name", "mode", "expected"),
    [
        ("shop.pu-blic.1", "none", "shop.pu-blic.1"),
        ("shop.pu-blic.1", "avro", "shop.pu_blic.1"),
        ("1a", "avro", "_1a"),
        ("a_b-c", "avro_unicode", "a_u005fb_u002dc"),
    ],
)
def test_names_for_avro(name: str, mode: str, expected: str) -> None:
    assert adjusted(name, mode, keeps_dots=True) == expected


def test_masks() -> None:
    orders = TableId("public", "orders")
    settings = {
        "column.mask.with.3.chars": "public.orders.name",
        "column.truncate.to.2.chars": "public.orders.note",
        "column.mask.hash.v2.SHA-256.with.salt.abc": "public.orders.mail",
    }
    found = {name: mask for mask in masks_of(settings) for name in ("name", "note", "mail") if mask.has(orders, name)}
    assert found["name"].change("secret") == "***"
    assert found["note"].change("secret") == "se"
    assert len(found["mail"].change("a@b")) == 64
    for wrong in ("column.mask.with.x.chars", "column.mask.hash.v2.CRC.with.salt.a"):
        with pytest.raises(ValueError, match=r"column\.mask"):
            masks_of({wrong: "a"})
    with pytest.raises(ConfigError):
        settings_of(**{"column.mask.with.x.chars": "a"})
