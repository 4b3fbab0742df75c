"""Explanations of refusals: the reasons, and the alternatives that would be granted.

The only records that are written here are explanations.
"""
