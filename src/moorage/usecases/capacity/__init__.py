"""Capacity over time: how much there is, how many fit and when, and when hosts are away.

What only looks reads one snapshot and commits nothing. What a caller may see of it is settled
here (`seen`): tenants get neither totals nor exact counts.
"""
