"""Reservations in Blazar's terms: requests, requirements, and taking over a Blazar service.

Leases themselves are granted in `leases`, not here.
"""
