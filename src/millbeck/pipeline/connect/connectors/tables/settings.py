"""The settings of the table sinks. Iceberg's are those of Apache Iceberg's own connector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.config.checks import at_least, non_empty_text
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    STRING,
    ConfigDef,
    ConfigKey,
    Importance,
)
from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind, Delivery, SettingProblem

_PACKAGE: Final = "millbeck.pipeline.connect.connectors.tables"
CATALOG_PREFIX: Final = "iceberg.catalog."
STORAGE_PREFIX: Final = "delta.storage."
_HIGH: Final = Importance.HIGH

_FILE_ROWS = ConfigKey(
    name="file.rows.max",
    kind=INT,
    default=1_000_000,
    check=at_least(1),
    importance=Importance.LOW,
    doc="How many rows a data file has at most.",
)


def _iceberg_problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    tables = values["iceberg.tables"]
    if len(tables) != 1 or "." not in tables[0]:
        yield SettingProblem("iceberg.tables", "name one table, as namespace.table; use a connector for each table")


ICEBERG_SINK: Final = ConnectorClass(
    name="org.apache.iceberg.connect.IcebergSinkConnector",
    kind=ConnectorKind.SINK,
    doc="Rows of an Iceberg table, one snapshot for each turn.",
    delivery=Delivery.IN_TARGET,
    implementation=f"{_PACKAGE}.iceberg:IcebergSink",
    problems=_iceberg_problems,
    extra="iceberg",
    config_def=ConfigDef(
        ConfigKey(
            name="iceberg.tables",
            kind=LIST,
            importance=_HIGH,
            doc="The table, as namespace.table; records of all topics go there.",
        ),
        ConfigKey(
            name="iceberg.catalog",
            kind=STRING,
            default="iceberg",
            importance=Importance.LOW,
            doc="The catalog's name, which a sql catalog tells its tables by.",
        ),
        ConfigKey(
            name="iceberg.catalog.type",
            kind=STRING,
            default=None,
            importance=_HIGH,
            doc="The catalog: rest, sql, glue, hive or dynamodb; default: what iceberg.catalog.uri tells. All other "
            "settings that begin with iceberg.catalog. go to pyiceberg as well.",
        ),
        ConfigKey(
            name="iceberg.catalog.uri",
            kind=STRING,
            default=None,
            importance=_HIGH,
            doc="Where the catalog is: http://catalog:8181, or sqlite:// and postgresql+psycopg:// for sql.",
        ),
        ConfigKey(
            name="iceberg.catalog.warehouse",
            kind=STRING,
            default=None,
            importance=_HIGH,
            doc="The warehouse: where new tables are stored, or its name in the catalog.",
        ),
        ConfigKey(
            name="iceberg.catalog.token",
            kind=PASSWORD,
            default=None,
            doc="The bearer token for a rest catalog.",
        ),
        ConfigKey(
            name="iceberg.catalog.credential",
            kind=PASSWORD,
            default=None,
            doc="Client id and secret for a rest catalog, as id:secret.",
        ),
        ConfigKey(
            name="iceberg.tables.auto-create-enabled",
            kind=BOOLEAN,
            default=False,
            doc="Whether a missing table is created from the schema of the first record.",
        ),
        ConfigKey(
            name="iceberg.tables.evolve-schema-enabled",
            kind=BOOLEAN,
            default=False,
            doc="Whether columns are added for new fields.",
        ),
        _FILE_ROWS,
    ),
)

DELTA_SINK: Final = ConnectorClass(
    name="io.delta.connect.DeltaSinkConnector",
    kind=ConnectorKind.SINK,
    doc="Rows of a Delta Lake table, one version for each turn.",
    delivery=Delivery.IN_TARGET,
    implementation=f"{_PACKAGE}.delta:DeltaSink",
    extra="delta",
    config_def=ConfigDef(
        ConfigKey(
            name="delta.table.uri",
            kind=STRING,
            check=non_empty_text(),
            importance=_HIGH,
            doc="Where the table is: file:///tables/orders, s3://bucket/orders, gs://… or az://…. Settings that begin "
            "with delta.storage. go to deltalake as storage options, such as delta.storage.AWS_REGION.",
        ),
        ConfigKey(
            name="delta.table.auto.create",
            kind=BOOLEAN,
            default=False,
            doc="Whether a missing table is created from the schema of the first record.",
        ),
        ConfigKey(
            name="delta.table.evolve",
            kind=BOOLEAN,
            default=False,
            doc="Whether columns are added for new fields.",
        ),
        _FILE_ROWS,
    ),
)
