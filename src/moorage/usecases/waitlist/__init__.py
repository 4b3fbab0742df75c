"""The waitlist: entries, the order in which they are tried, and their estimates (ADR-0015).

Entries are granted by the use case of leases (`usecases.leases.create`); the package has no search
or commit of its own. `waitlist_turn` keeps other requests from overtaking entries.
"""
