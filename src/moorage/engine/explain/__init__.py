"""Explanations: minimal conflicts, and verified relaxations.

Nothing here decides what a project may read of them.
"""
