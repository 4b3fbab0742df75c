"""Moorage: joint placement, reservations and resource accounting for OpenStack.

One ledger of bookings stands behind every door. Each package below says in its docstring what may
live there and what may not; `docs/reading-the-code.md` gives the order to read them in.

Nothing is imported here: `import moorage` costs nothing and reaches no layer by accident.
"""
