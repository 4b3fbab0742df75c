"""Many writers at once: the log says when; on PostgreSQL a commit's locks in one round trip."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BEGIN = """
CREATE FUNCTION moorage_begin(
    alone boolean, ids text[], ensembles text[], consumers text[], providers text[], relied text[],
    OUT number bigint, OUT instant bigint
) LANGUAGE plpgsql AS $$
DECLARE
    key bigint;
    mine boolean;
    everybody CONSTANT bigint := hashtextextended('moorage', 0);
    who text[] := consumers;
BEGIN
    -- Each query below sees what was committed while the locks before it were waited for.
    IF alone THEN
        PERFORM pg_advisory_xact_lock(everybody);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(everybody);
        IF cardinality(ids) + cardinality(ensembles) > 0 THEN
            FOR key IN
                SELECT DISTINCT hashtextextended(one, 3)
                FROM unnest(ids || ensembles) AS one ORDER BY 1
            LOOP
                PERFORM pg_advisory_xact_lock(key);
            END LOOP;
            who := who || ARRAY(
                SELECT consumer::text FROM members WHERE ensemble_id = ANY (ensembles)
            );
        END IF;
        FOR key IN SELECT DISTINCT hashtextextended(one, 1) FROM unnest(who) AS one ORDER BY 1 LOOP
            PERFORM pg_advisory_xact_lock(key);
        END LOOP;
        FOR key, mine IN
            SELECT hashtextextended(one, 2), bool_or(written) FROM (
                SELECT unnest(providers) AS one, true AS written
                UNION ALL
                SELECT provider::text, true FROM bookings WHERE consumer = ANY (who)
                UNION ALL
                SELECT unnest(relied), false
            ) AS every GROUP BY 1 ORDER BY 1
        LOOP
            IF mine THEN
                PERFORM pg_advisory_xact_lock(key);
            ELSE
                PERFORM pg_advisory_xact_lock_shared(key);
            END IF;
        END LOOP;
    END IF;
    number := pg_current_xact_id()::text::bigint;
    instant := extract(epoch FROM clock_timestamp()) * 1000000;
END
$$
"""


def upgrade() -> None:
    op.add_column("changes", sa.Column("at", sa.BigInteger()))
    if op.get_bind().dialect.name == "postgresql":
        op.get_bind().exec_driver_sql(BEGIN)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION moorage_begin")
    op.drop_column("changes", "at")
