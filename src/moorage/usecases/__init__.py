"""One verb per module: read, decide, commit. Project scoping is enforced here.

Use cases know ports (`ports.py`), never an adapter: no SQL, HTTP or framework.
"""
