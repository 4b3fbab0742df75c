"""Following the change log: the snapshot in memory, and the events.

Nothing here writes.
"""
