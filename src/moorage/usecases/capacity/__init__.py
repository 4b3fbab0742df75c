"""Capacity over time: amounts, how many members fit and when, and planned absences of hosts.

Queries read one snapshot and commit nothing; `planned` alone writes. `scope` decides what a caller
may see: tenants get neither totals nor exact counts.
"""
