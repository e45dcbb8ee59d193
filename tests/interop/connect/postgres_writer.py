"""Changes by chance, and what the table holds after them."""

from __future__ import annotations

import random

from tests.interop.connect.postgres_server import PostgresServer


class Writer:
    """Transactions of 1 to 40 changes of a table ``items``, of which some are rolled back."""

    def __init__(self, server: PostgresServer, seed: int, *, hot: int = 500) -> None:
        """Updates and deletes are of the ``hot`` rows that have been there for longest."""
        self._db = server.connect(autocommit=False)
        self._hot = hot
        self._chance = random.Random(seed)
        self.rows: dict[int, str] = {}
        self.changes = 0
        self.transactions = 0
        self._next = 1

    def create(self, *, rows: int = 0) -> None:
        self._db.execute("create table items (id int primary key, note text, tx int)")
        self._db.execute("insert into items select i, 'row', 0 from generate_series(1, %s) i", (rows,))
        self._db.commit()
        self.rows = dict.fromkeys(range(1, rows + 1), "row")
        self._next = rows + 1

    def transaction(self, count: int | None = None) -> None:
        self.transactions += 1
        rows = dict(self.rows)
        made = 0
        for _ in range(count or self._chance.randrange(1, 40)):
            kind = self._chance.random()
            note = f"{self.transactions}-{self._chance.randrange(10**6)}"
            if kind < 0.6 or not rows:
                self._db.execute("insert into items values (%s, %s, %s)", (self._next, note, self.transactions))
                rows[self._next] = note
                self._next += 1
            else:
                number = self._chance.choice(list(rows)[: self._hot])
                if kind < 0.85:
                    self._db.execute(
                        "update items set note = %s, tx = %s where id = %s", (note, self.transactions, number)
                    )
                    rows[number] = note
                else:
                    self._db.execute("delete from items where id = %s", (number,))
                    del rows[number]
            made += 1
        if self._chance.random() < 0.1:
            self._db.rollback()
            return
        self._db.commit()
        self.rows = rows
        self.changes += made

    def close(self) -> None:
        self._db.close()
