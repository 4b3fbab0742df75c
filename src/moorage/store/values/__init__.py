"""How domain values are stored: columns of rows, and JSON bodies.

No statement is run here.
"""
