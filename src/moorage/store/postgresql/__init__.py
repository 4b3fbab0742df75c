"""PostgreSQL: connections, transactions, locks, errors and the change log.

Only what differs from other databases lives here.
"""
