"""Offers: found over a range of starts, held until they expire, accepted as leases.

Searching and writing are those of leases (`usecases.leases`, `usecases.decide`).
"""
