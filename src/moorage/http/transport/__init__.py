"""HTTP/1.1 between sockets and one WSGI application (ADR-0016).

`incoming` finds requests in bytes, `environs` puts their parts as WSGI has them, `body` has what
comes after a head, `outgoing` makes bytes of answers, a `connection` takes turns at all of them,
and a `crew` of threads gives a turn to whoever has something to do. Nothing here knows what the
application is, who may ask it, or a process.
"""
