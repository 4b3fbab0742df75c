"""Reaching outside: a webhook is told, the operator's program is run, Nova ends a server.

Only adapters live here, no decisions. Each does one thing for one message, within a bounded time,
and raises `OutwardFailure` where it was not done or nobody knows. When it is done and how often it
is tried is decided by `usecases.effects`; nothing here reads the ledger.
"""
