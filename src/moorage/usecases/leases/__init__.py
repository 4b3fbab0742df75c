"""Use cases of leases, one verb per module, their lifecycle, and the lease sweeper's rounds.

This package knows no dialect and starts no thread; `workers` repeats its rounds.
"""
