"""`PostgresLocks`: a database's advisory locks, for workers on any number of machines."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from twin.errors import ServetwinError

_HELD = """
select count(*) from pg_locks
where locktype = 'advisory' and granted and objsubid = 1
  and database = (select oid from pg_database where datname = current_database())
  and classid::bigint = %s and objid::bigint = %s
"""


class PostgresLocks:
    """Advisory locks of one database session: the server drops them when the session ends.

    Args:
        url: of the database, `postgresql://...`.
        study: name of the study they are for.
    """

    def __init__(self, url: str, study: str) -> None:
        import psycopg

        self._study = study
        self._thread = threading.RLock()  # one session has each lock once, whatever its threads
        self._session = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=10,
            # A machine that vanished is noticed within a minute or so.
            keepalives_idle=20,
            keepalives_interval=10,
            keepalives_count=4,
        )

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Return a context in which nobody else changes the study; it may be nested."""
        key = _key(self._study)
        with self._thread:
            self._run("select pg_advisory_lock(%s)", key)
            try:
                yield
            finally:
                with suppress(DatabaseLostError):  # then the lock has gone, too
                    self._run("select pg_advisory_unlock(%s)", key)

    def announce(self, worker: str) -> None:
        """Let others see that a worker lives, until this process ends or `leave` is called."""
        self._run("select pg_advisory_lock(%s)", _key(worker))

    def lives(self, worker: str) -> bool:
        """Whether a worker that announced itself still lives."""
        low = _key(worker) & 0xFFFFFFFF
        high = (_key(worker) >> 32) & 0xFFFFFFFF
        return bool(self._run(_HELD, high, low))

    def leave(self) -> None:
        """Take back what was announced."""
        self._session.close()

    def _run(self, query: str, *values: int) -> object:
        import psycopg

        try:
            row = self._session.execute(query, values).fetchone()
        except psycopg.Error as error:
            raise DatabaseLostError(f"the study's database went away: {error}") from None
        return row[0] if row else None


class DatabaseLostError(ServetwinError):
    """The database stopped answering in the middle of a study; what is done is kept there."""


def _key(name: str) -> int:
    """Return the signed 64-bit number that a name locks."""
    digest = hashlib.sha256(f"servetwin {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
