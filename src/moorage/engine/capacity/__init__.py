"""Capacity over time: how much there is, how many fit, and the earliest start.

Nothing here places members.
"""
