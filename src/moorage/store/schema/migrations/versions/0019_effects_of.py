"""Find what is still to be done about a subject without looking at all that is to be done."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_effects_subject_state", "effects", ["subject", "state"])
    op.drop_index("ix_effects_subject", "effects")


def downgrade() -> None:
    op.create_index("ix_effects_subject", "effects", ["subject"])
    op.drop_index("ix_effects_subject_state", "effects")
