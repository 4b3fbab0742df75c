"""Runs the migrations on the connection it is given; see `moorage.store.upgrade`."""

from alembic import context

from moorage.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
