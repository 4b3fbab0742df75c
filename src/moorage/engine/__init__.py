"""Pure search and arithmetic over columns: capacity over time, candidates, joint problems.

Computed with numpy, without a Python loop over the providers of the fleet. No socket, file, clock,
random source, SQL or solver library: time, seeds and ids are arguments.
"""
