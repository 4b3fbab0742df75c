"""Solvers of the joint problem behind one protocol, and the pool that runs them.

`exhaustive` is the oracle of the tests, `greedy` answers at once, `cpsat` (the only module
that imports OR-Tools) proves and improves, `strategies` runs it with those of plug-ins,
`portfolio` combines them.
"""
