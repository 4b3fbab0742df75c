"""Blazar's reservations: lease requests, requirements, reservables, and imports from Blazar.

Leases are granted by `leases`.
"""
