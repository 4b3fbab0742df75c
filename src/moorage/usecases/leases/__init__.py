"""What can be done with leases, one verb per module, and what happens to them as time goes by.

Only decisions live here: nothing knows a dialect, a loop or whoever is reached outside.
"""
