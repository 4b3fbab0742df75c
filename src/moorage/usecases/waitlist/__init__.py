"""The waitlist: who waits, in which order they are tried, and when they may expect it (ADR-0015).

What is here grants through the ways of a lease (`usecases.leases.create`); it has no search and no
writing of its own. `turn` is what keeps everybody else from overtaking.
"""
