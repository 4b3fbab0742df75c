"""Reads stored values: bookings, ensembles, leases, providers, the waitlist, counts, records.

Nothing here writes.
"""
