"""HTTP dialects, one package each; none imports another.

A dialect is a WSGI application over use cases. No business rule lives here.
"""
