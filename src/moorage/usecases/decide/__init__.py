"""Joint decisions: a request becomes attempts, and the first that commits is the decision.

`request` says what is asked, `attempt` plans once on what the ledger holds, `loop` repeats that
until it is committed, `writes` says which changes a decision is. Nothing here knows leases as such:
who may give way to a request is known by the strategies in `preemption` and `relocation`, which are
handed in (`environment`).
"""
