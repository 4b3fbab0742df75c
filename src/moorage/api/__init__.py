"""HTTP dialects, one package each: `placement`, `native` (`/v1`) and `leases` (Blazar's API).

None imports another. A dialect is a WSGI application over use cases. No business rule lives here.
"""
