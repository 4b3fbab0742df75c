"""Preemption: who may be displaced for a lease, who is chosen, and what they get back.

Strategies of decisions and what they write live here; nothing knows leases that move
(`relocation`), or the verbs of leases.
"""
