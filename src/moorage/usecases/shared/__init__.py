"""What use cases of several packages need: retries, ports, and what one process remembers.

Nothing here knows another package of use cases.
"""
