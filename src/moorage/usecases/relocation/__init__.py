"""Leases that may move: replanned before they begin, and repaired after their hosts fail.

Strategies of decisions and what they write live here, and no verb of a lease.
"""
