"""Random requests: sent to us and to the reference, whose answers must agree.

`sides` runs both, `generation` makes requests, `agreement` says what must be equal, and
`differences` names where we mean to differ. `python -m tests.fuzz` searches, `make test` looks at
a few seeds. What disagrees is either mended or becomes a named difference, argued in
docs/reference/placement.md.
"""
