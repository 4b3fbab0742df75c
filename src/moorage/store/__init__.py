"""The ledger in a relational database: rows <-> values, and the one write path.

Here live tables, migrations, codecs, reads, the commit and the feed that keeps a columnar
snapshot in step. No decisions: what to write is settled before it comes here; the commit
only judges whether it still holds. `open_store` is all that `app` needs.
"""

from moorage.store.ledger import Ledger
from moorage.store.opening import is_missing, open_store

__all__ = ["Ledger", "is_missing", "open_store"]
