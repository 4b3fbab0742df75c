"""Reservations in Blazar's words: what they ask of a lease, and leases granted by a Blazar.

Only meaning lives here: nothing knows a wire, dates as they are written, or who is asked; how
leases are granted is in `usecases.leases`.
"""
