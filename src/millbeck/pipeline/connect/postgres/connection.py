"""Connections to the database, by psycopg's public interface.

All of them ask for texts that do not depend on the server's settings. Passwords are in connection strings only, which
are in no message.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn, PGresult

from millbeck.kernel.option_kinds import Secret
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, RetriableError

CONNECT_TIMEOUT_S: Final = 15
_STEP_S: Final = 0.5
_SESSION: Final = {
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "lc_monetary": "C",
    "client_encoding": "UTF8",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
_REFUSED: Final = {
    "28000": "database.user",
    "28P01": "database.password",
    "3D000": "database.dbname",
    "42501": "database.user",
}
"""SQLSTATEs that trying again cannot mend, with the setting to look at."""


def application_name(connector: str) -> str:
    """How the server lists the connections of a connector."""
    return f"millbeck connect {connector}"[:63]


def conninfo(values: Mapping[str, Any], connector: str, *, replication: bool = False) -> str:
    given: dict[str, Any] = {
        "host": values["database.hostname"],
        "port": values["database.port"],
        "user": values["database.user"],
        "password": _revealed(values["database.password"]),
        "dbname": values["database.dbname"],
        "sslmode": "require" if values["database.sslmode"] == "required" else values["database.sslmode"],
        "sslrootcert": values["database.sslrootcert"],
        "sslcert": values["database.sslcert"],
        "sslkey": values["database.sslkey"],
        "sslpassword": _revealed(values["database.sslpassword"]),
        "keepalives": int(values["database.tcpKeepAlive"]),
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": application_name(connector),
        "options": " ".join(f"-c {name}={text}" for name, text in _SESSION.items()),
        "replication": "database" if replication else None,
    }
    text: str = make_conninfo("", **{name: value for name, value in given.items() if value is not None})
    return text


def _revealed(password: Secret | None) -> str | None:
    return None if password is None else password.reveal()


def connected(values: Mapping[str, Any], connector: str) -> psycopg.Connection[Any]:
    """An ordinary connection, in autocommit. Raises `ConfigError` or `RetriableError`."""
    try:
        return psycopg.connect(conninfo(values, connector), autocommit=True)
    except psycopg.Error as error:
        raise translated(error, values) from error


def replicating(values: Mapping[str, Any], connector: str) -> PGconn:
    """A connection for the commands of the replication protocol."""
    made = pq.PGconn.connect(conninfo(values, connector, replication=True).encode())
    if made.status != pq.ConnStatus.OK:
        text = made.get_error_message()
        made.finish()
        if "permission denied" in text or "must be superuser" in text or "no pg_hba.conf entry" in text:
            raise ConfigError(f"database.user: {one_line(text)}: {REPLICATION_RIGHT}")
        raise RetriableError(f"{_place(values)}: {one_line(text)}")
    return made


REPLICATION_RIGHT: Final = (
    "grant it by ALTER ROLE ... REPLICATION, and let it in by a line for the database in pg_hba.conf"
)


def command(connection: PGconn, text: str, *, timeout_s: float | None = None) -> PGresult:
    """Run a command; raises `CommandError`, also when it has been cancelled because it took too long."""
    if timeout_s is not None:
        connection.send_query(text.encode())
        if not _is_answered(connection, timeout_s):
            connection.get_cancel().cancel()
            _is_answered(connection, CONNECT_TIMEOUT_S)
        result = connection.get_result()
        while result is not None and connection.get_result() is not None:
            pass
        if result is None:
            raise CommandError("the server has not answered", "")
    else:
        result = connection.exec_(text.encode())
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK, pq.ExecStatus.COPY_BOTH):
        return result
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    raise CommandError(one_line(result.get_error_message()), state)


def _is_answered(connection: PGconn, timeout_s: float) -> bool:
    """Wait for the answer to what was sent."""
    waited_s = 0.0
    while connection.is_busy():
        readable, _, _ = select.select([connection.socket], [], [], _STEP_S)
        if readable:
            connection.consume_input()
            continue
        waited_s += _STEP_S
        if waited_s >= timeout_s:
            return False
    return True


class CommandError(RetriableError):
    """A command of the replication protocol failed. ``state`` is the SQLSTATE."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.state = state


def translated(error: psycopg.Error, values: Mapping[str, Any]) -> ConnectError:
    """The error for the supervisor: whether it is worth trying again, and the setting that has to change."""
    state = error.sqlstate
    text = one_line(str(error))
    if state is None:
        # The server's message of a refused login has no state in it.
        for words, setting in (
            ("password authentication failed", "database.password"),
            ("no password supplied", "database.password"),
            ("role", "database.user"),
            ("database", "database.dbname"),
            ("no pg_hba.conf entry", "database.user"),
        ):
            if words in text and ("does not exist" in text or words not in ("role", "database")):
                return ConfigError(f"{setting}: {text}")
    elif state in _REFUSED:
        return ConfigError(f"{_REFUSED[state]}: {text}")
    return RetriableError(f"{_place(values)}: {text}")


def _place(values: Mapping[str, Any]) -> str:
    return f"database {values['database.dbname']} at {values['database.hostname']}:{values['database.port']}"


def one_line(text: str) -> str:
    return " ".join(text.split())[:500]


def quoted_name(*parts: str) -> str:
    """A name in SQL."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def quoted_text(text: str) -> str:
    """A text in SQL, and in commands of the replication protocol."""
    shown = text.replace("'", "''")
    return f"E'{shown}'".replace("\\", "\\\\") if "\\" in text else f"'{shown}'"
