"""What each change of a changeset does to the tables: one function per change, by noun.

Nothing here judges the end state; `commit.judge` does.
"""
