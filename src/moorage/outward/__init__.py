"""Outgoing calls: webhooks, subscribers, the operator's programs, and server deletion in Nova.

Only adapters live here, no decisions. Each does one thing for one message, within a bounded time,
and raises `OutwardFailure` if it was not done or its result is unknown. `usecases.effects` decides
when it is done and how often it is tried; nothing here reads the ledger.
"""
