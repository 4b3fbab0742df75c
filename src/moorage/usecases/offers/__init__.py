"""Offers: found over a range of starts, held until they expire, accepted into leases.

What is here decides and commits through the ways of a lease (`usecases.leases`, `usecases.decide`);
it has no search and no writing of its own.
"""
