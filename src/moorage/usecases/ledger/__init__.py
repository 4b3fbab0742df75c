"""Placement's verbs: allocations, providers, fleet loading, audit, taking over a Placement service.

Nothing here decides jointly.
"""
