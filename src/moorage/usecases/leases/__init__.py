"""Use cases of leases, one verb per module, and the lifecycle of a lease.

This package knows no dialect, runs no loop and calls no other service.
"""
