"""Background workers: claim due work, run a use case for it, record the result.

Only loops live here, no decisions: what happens to an item is a use case given by `app`. Every
step is idempotent and correctness never waits for a worker: a hold that has lapsed stops
counting at that instant, whether or not that is recorded.
"""
