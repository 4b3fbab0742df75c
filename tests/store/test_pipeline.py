"""Several statements in one round trip: how an error at its very end is told."""

import psycopg
import pytest

from moorage.store.postgresql.connection import Call, RawConnection


def test_an_end_that_fails_is_that_error_and_the_connection_stands(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("CREATE TABLE one (number int PRIMARY KEY)")
        admin.execute(
            "CREATE TABLE other (number int REFERENCES one DEFERRABLE INITIALLY DEFERRED)"
        )
        wire = RawConnection(psycopg.connect(postgres_url))
        try:
            calls = [Call("INSERT INTO other VALUES ($1)", (1,)), Call("SELECT 1")]
            for _ in ("fresh", "prepared"):
                with pytest.raises(psycopg.errors.ForeignKeyViolation):
                    wire.run(calls)
                assert not wire.broken
                assert wire.one("SELECT count(*) FROM other") == (0,)
            wire.run([Call("INSERT INTO one VALUES ($1)", (1,)), *calls])
            assert wire.one("SELECT count(*) FROM other") == (1,)
        finally:
            wire.close()
            admin.execute("DROP TABLE other, one")
