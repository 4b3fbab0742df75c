"""Ordered moves from one placement to another: targets, order, and what waits for what.

Units, hosts and amounts are numbers here, and policies are `Rule`s with an amount by which they are
violated. No ledger, no server and no policy's meaning: `usecases.plans` makes the problem and reads
the result.
"""
