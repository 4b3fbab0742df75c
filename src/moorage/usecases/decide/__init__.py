"""Joint decisions: a request becomes attempts, and the first that commits is the decision.

`request` has the input, `attempt` makes one plan from one snapshot, `loop` repeats attempts until
one is committed, `writes` makes the changes of a decision. Which leases or servers may give way to
a request is known only by the strategies in `preemption` and `relocation`, which are passed in
(`environment`).
"""
