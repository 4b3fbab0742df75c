"""HTTP/1.1 between sockets and one WSGI application (ADR-0016).

`incoming` finds requests in bytes, `outgoing` makes bytes of answers, a `connection` takes turns at
both, and a `crew` of threads gives a turn to whichever connection has something to do.
"""
