"""Pure search and arithmetic over columns: capacity over time, candidates, joint problems.

numpy is welcome, objects per provider in a loop over the fleet are not. No socket, file,
clock, random source, SQL or solver library: time, seeds and ids are arguments.
"""
