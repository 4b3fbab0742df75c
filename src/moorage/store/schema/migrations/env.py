"""Runs the migrations on the connection it is given; see `moorage.store.schema.upgrade`."""

from alembic import context

from moorage.store.schema.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
