"""What the database says of its tables and types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import psycopg

from millbeck.pipeline.connect.postgres.pgoutput import Relation, RelationColumn, ReplicaIdentity
from millbeck.pipeline.connect.postgres.tables import Column, ColumnType, Table, TableId, TypeKind

Connection: TypeAlias = "psycopg.Connection[Any]"

_TYPE = """
    select typname, typtype, typcategory, typelem, typbasetype, typtypmod, typsubscript::text
    from pg_catalog.pg_type where oid = %s
"""
_TYPE_BEFORE_14 = """
    select typname, typtype, typcategory, typelem, typbasetype, typtypmod,
           case when typlen = -1 then 'array_subscript_handler' else '' end
    from pg_catalog.pg_type where oid = %s
"""
_LABELS = "select enumlabel from pg_catalog.pg_enum where enumtypid = %s order by enumsortorder"
_COLUMNS = """
    select a.attname, a.atttypid, a.atttypmod, a.attnotnull or t.typnotnull, a.attgenerated <> '',
           pg_catalog.pg_get_expr(d.adbin, d.adrelid), pg_catalog.col_description(a.attrelid, a.attnum)
    from pg_catalog.pg_attribute a
    join pg_catalog.pg_type t on t.oid = a.atttypid
    left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = %s and a.attnum > 0 and not a.attisdropped
    order by a.attnum
"""
_KEY = """
    select array_agg(a.attname::text order by k.place)
    from pg_catalog.pg_index i
    cross join lateral unnest(i.indkey::int2[]) with ordinality k(attnum, place)
    join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
    where i.indrelid = %s and i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
      and k.place <= i.indnkeyatts
    group by i.indexrelid, i.indisprimary, i.indisreplident, i.indnkeyatts
    having (i.indisprimary or bool_and(a.attnotnull)) and count(*) = i.indnkeyatts
    order by i.indisprimary desc, i.indisreplident desc, i.indexrelid
    limit 1
"""
_TABLE = "select relreplident, relkind from pg_catalog.pg_class where oid = %s"


class Catalog:
    """Descriptions of tables, with types remembered. It lives on one thread, with a connection of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._types: dict[int, tuple[ColumnType, int]] = {}
        self._relations: dict[Relation, Table] = {}

    def table(self, oid: int) -> Table | None:
        """A table as it is now; None when it is gone."""
        found = self._connection.execute(_TABLE, (oid,)).fetchone()
        name = self._connection.execute(
            "select n.nspname, c.relname from pg_catalog.pg_class c "
            "join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.oid = %s",
            (oid,),
        ).fetchone()
        if found is None or name is None:
            return None
        columns = tuple(column for column, is_generated in self._columns(oid) if not is_generated)
        return Table(id=TableId(*name), columns=columns, key=self._key(oid), replica_identity=ReplicaIdentity(found[0]))

    def described(self, relation: Relation) -> Table:
        """A table as the stream has it. What the stream does not say (defaults, nulls) is taken from the table as it is
        now, for columns that it still has.
        """
        known = self._relations.get(relation)
        if known is not None:
            return known
        now = {(column.name, column.type): column for column, _ in self._columns(relation.oid)}
        columns = tuple(self._streamed(column, now) for column in relation.columns)
        names = {column.name for column in columns}
        key = self._key(relation.oid)
        if not key or not names.issuperset(key):
            is_part = relation.replica_identity is not ReplicaIdentity.FULL
            key = tuple(column.name for column in relation.columns if column.is_key) if is_part else ()
        made = Table(
            id=TableId(relation.schema, relation.name),
            columns=columns,
            key=key,
            replica_identity=relation.replica_identity,
        )
        self._relations[relation] = made
        return made

    def _streamed(self, column: RelationColumn, now: dict[tuple[str, ColumnType], Column]) -> Column:
        kind, modifier = self.type_of(column.type_oid)
        if modifier == -1:
            modifier = column.type_modifier
        current = now.get((column.name, kind))
        if current is None:
            return Column(name=column.name, type=kind, modifier=modifier)
        return Column(
            name=column.name,
            type=kind,
            modifier=modifier,
            optional=current.optional,
            default=current.default,
            comment=current.comment,
        )

    def _columns(self, oid: int) -> Iterable[tuple[Column, bool]]:
        for name, type_oid, modifier, is_required, is_generated, default, comment in self._connection.execute(
            _COLUMNS, (oid,)
        ).fetchall():
            kind, own_modifier = self.type_of(type_oid)
            yield (
                Column(
                    name=name,
                    type=kind,
                    modifier=own_modifier if own_modifier != -1 else modifier,
                    optional=not is_required,
                    default=None if is_generated else default,
                    comment=comment,
                ),
                is_generated,
            )

    def _key(self, oid: int) -> tuple[str, ...]:
        found = self._connection.execute(_KEY, (oid,)).fetchone()
        return () if found is None else tuple(found[0])

    def type_of(self, oid: int) -> tuple[ColumnType, int]:
        """A type with the modifier that a domain gives it, -1 for none. Labels of enums are read again when the table
        changes its shape.
        """
        found = self._types.get(oid)
        if found is None:
            found = self._read_type(oid, 0)
            if found[0].kind is not TypeKind.ENUM:
                self._types[oid] = found
        return found

    def _read_type(self, oid: int, depth: int) -> tuple[ColumnType, int]:
        query = _TYPE if self._connection.info.server_version >= 140_000 else _TYPE_BEFORE_14
        row = self._connection.execute(query, (oid,)).fetchone()
        if row is None or depth > 32:
            return ColumnType("unknown", TypeKind.OTHER), -1
        name, kind, category, element, base, modifier, subscript = row
        if kind == "d":
            made, inner = self._read_type(base, depth + 1)
            return made, modifier if modifier != -1 else inner
        if kind == "e":
            labels = tuple(label for (label,) in self._connection.execute(_LABELS, (oid,)).fetchall())
            return ColumnType(name, TypeKind.ENUM, labels), -1
        if category == "A" and element and subscript == "array_subscript_handler":
            inner_type, modifier = self._read_type(element, depth + 1)
            return ColumnType(name, TypeKind.ARRAY, (), inner_type), modifier
        is_known = kind == "b" or (kind == "r" and oid < 16_384)
        return ColumnType(name, TypeKind.BASE if is_known else TypeKind.OTHER), -1
