"""Reading stored values: one module per noun.

Nothing here writes.
"""
