"""Compliance: whether the placed members of an ensemble keep its policies now, and who is told.

`judgement` evaluates one ensemble at one snapshot; `monitor` finds the ensembles that a change
concerns, judges them and keeps the violations as records (ADR-0057). The package moves no member
and has no search.
"""
