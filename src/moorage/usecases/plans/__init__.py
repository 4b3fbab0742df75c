"""Plans: which servers move where, in which order, so that hosts become empty or policies hold.

`plan_maker` makes a plan from a snapshot and writes nothing; `lifecycle` and `steps` store one and
carry it out. The rules for Nova's requests to Placement while a plan runs are not here, but in
`usecases.ledger.plan_targets`; nor is the search for moves, which is `engine.moves`.
"""
