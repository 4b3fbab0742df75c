"""Reservations in Blazar's words: what they ask of a lease, and leases granted by a Blazar.

Whoever hears such words, over the wire or from another service, is above; how leases are granted is
in `usecases.leases`.
"""
