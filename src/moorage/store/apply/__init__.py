"""What each change of a changeset does to the tables: one function per change, by noun.

A function gets the batch and its change, checks what can be checked at once, and writes.
No transactions and no commits here: `commit` owns these, and its table names every function.
"""
