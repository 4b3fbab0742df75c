"""Allocation candidates: a query against provider trees.

Nothing here decides jointly; that is `engine.joint`.
"""
