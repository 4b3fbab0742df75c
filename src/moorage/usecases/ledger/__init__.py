"""Placement's verbs, fleet loading, the audit, and the import of a Placement service.

Except for `withdrawal`, nothing here makes a joint decision.
"""
