"""Blazar's reservations: lease requests, requirements, reservables, and imports from Blazar.

Leases are not granted here, but by `leases`.
"""
