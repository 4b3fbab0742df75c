"""Bodies are stored as their classes are written; versions before cannot read those (ADR-0051)."""

revision = "0014_bodies_of_classes"
down_revision = "0013_request_mix"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change nothing: what was stored before is read as it stands."""
