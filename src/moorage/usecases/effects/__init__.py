"""The effects that changes leave for later: timers of leases, and what others are told of.

Only what is written belongs here; who carries effects out is in `effect_dispatch`.
"""
