"""How configurations name the connector. Needs no psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind, SettingProblem
from millbeck.pipeline.connect.postgres.offsets import offset_problem
from millbeck.pipeline.connect.postgres.options import POSTGRES_OPTIONS, contradictions


def _problems(values: Mapping[str, Any]) -> Iterator[SettingProblem]:
    for setting, problem in contradictions(values):
        yield SettingProblem(setting, problem)


POSTGRES_SOURCE: Final = ConnectorClass(
    name="io.debezium.connector.postgresql.PostgresConnector",
    kind=ConnectorKind.SOURCE,
    doc="Changes of a PostgreSQL database, with the records of Debezium.",
    config_def=POSTGRES_OPTIONS,
    has_own_transactions=True,
    implementation="millbeck.pipeline.connect.postgres.connector:PostgresSource",
    problems=_problems,
    offset_problem=offset_problem,
    extra="postgres",
)
