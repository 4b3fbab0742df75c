"""Plans: which servers move where, in which order, so that hosts become empty or policies hold.

`plan_maker` makes a plan from a snapshot and writes nothing.
"""
