"""The HTTP kernel and the processes that serve it.

Here live what every dialect shares (mounts, request ids, authentication, body limits, versions and
media types of the wire, the access log) and the supervisor with its children. Dialects, use
cases and stores are handed in; nothing here knows one of them, a route of theirs or a table.
"""
