"""Offers: found over a range of starts, held until they expire, accepted as leases.

Places are not searched here, but by `usecases.leases` and `usecases.decide`.
"""
