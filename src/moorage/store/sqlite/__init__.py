"""SQLite: connections, transactions and the change log.

Only what differs from other databases lives here.
"""
