"""Tickets: held and leased places that an unmodified Nova takes by its flavor's resource class.

A reservation of a lease and a role of a held decision each have a resource class of their own,
which no stored inventory has. A query for it sees the unclaimed places that it stands for, and a
write of allocations with it takes one of them. See ADR-0027.
"""
