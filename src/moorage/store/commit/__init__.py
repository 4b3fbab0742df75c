"""The one write path: a changeset is applied, judged and logged in one transaction.

Nothing else writes to the ledger. What to write is not decided here.
"""
