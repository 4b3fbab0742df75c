"""On PostgreSQL: take a commit's locks with one query where one consumer books on one provider.

An expression costs a hundredth of what a query inside a function does. Rows of providers, which
every commit moves, leave room on their pages, so that no index has to follow them.
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

BEGIN = """
CREATE OR REPLACE FUNCTION moorage_begin(
    alone boolean, ids text[], ensembles text[], consumers text[], providers text[], relied text[],
    OUT number bigint, OUT instant bigint
) LANGUAGE plpgsql AS $$
DECLARE
    key bigint;
    mine boolean;
    everybody CONSTANT bigint := hashtextextended('moorage', 0);
    who text[] := consumers;
    standing text[];
BEGIN
    -- Each query below sees what was committed while the locks before it were waited for.
    IF alone THEN
        PERFORM pg_advisory_xact_lock(everybody);
    ELSE
        -- `IS NULL` makes an expression of the lock; nothing hangs on the answer.
        IF pg_advisory_xact_lock_shared(everybody) IS NULL THEN NULL; END IF;
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
        IF cardinality(who) = 1 THEN
            IF pg_advisory_xact_lock(hashtextextended(who[1], 1)) IS NULL THEN NULL; END IF;
        ELSIF cardinality(who) > 1 THEN
            FOR key IN
                SELECT DISTINCT hashtextextended(one, 1) FROM unnest(who) AS one ORDER BY 1
            LOOP
                PERFORM pg_advisory_xact_lock(key);
            END LOOP;
        END IF;
        standing := providers;
        IF cardinality(who) > 0 THEN
            standing := standing || ARRAY(
                SELECT provider::text FROM bookings WHERE consumer = ANY (who)
            );
        END IF;
        IF cardinality(standing) = 1 AND cardinality(relied) = 0 THEN
            IF pg_advisory_xact_lock(hashtextextended(standing[1], 2)) IS NULL THEN NULL; END IF;
        ELSIF cardinality(standing) + cardinality(relied) > 0 THEN
            FOR key, mine IN
                SELECT hashtextextended(one, 2), bool_or(written) FROM (
                    SELECT unnest(standing) AS one, true AS written
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
    END IF;
    number := pg_current_xact_id()::text::bigint;
    instant := extract(epoch FROM clock_timestamp()) * 1000000;
END
$$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.get_bind().exec_driver_sql(BEGIN)
        op.execute("ALTER TABLE providers SET (fillfactor = 70)")


def downgrade() -> None:
    """The function before locks the same."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("ALTER TABLE providers RESET (fillfactor)")
