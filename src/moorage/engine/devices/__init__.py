"""Devices of hosts: their requirements, feasibility and assignment.

Nothing here knows policies.
"""
