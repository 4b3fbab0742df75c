"""Explanations: minimal conflicts, and relaxations shown to work.

Nothing here decides what a project may read of them.
"""
