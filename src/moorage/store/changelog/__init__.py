"""The change log: rows of a commit, names that it locks, and news for readers.

How a database keeps its log is not here, but in the package of that database.
"""
