"""The typed HTTP client, used by the command line and by scripts.

Here live: finding the endpoint, one HTTP call, the answers as structs, typed errors, and the
reading of files that describe requests. Nothing of the server side: it must run from the base
install. Nothing is printed here; that is the command line's affair.
"""
