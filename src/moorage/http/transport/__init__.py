"""HTTP/1.1 between sockets and one WSGI application (ADR-0024, and README.md beside this file).

`request_parser` parses requests, `wsgi_environ` makes environ keys and values, `response_writer`
encodes answers; a `connection` uses all three in turns, a `thread_pool` serves the connections that
are ready, and `server` accepts connections and shuts down. Nothing here imports the application:
limits, the server's name and a status are passed in.
"""
