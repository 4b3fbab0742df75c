"""Hostile requests to a running service through all three of its APIs, for as long as one likes.

`make fuzz-doors` runs it. No answer may be a 5xx but a 503 that says when to come back, none may
take longer than the service's own limit, memory must level off, and another tenant's ordinary
requests must go on being answered.
"""
