"""What each change of a changeset does to the tables: one function per change, by noun.

Nothing here checks the end state; `commit.inventory_check` does.
"""
