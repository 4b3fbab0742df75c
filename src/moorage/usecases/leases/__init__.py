"""Leases: an ensemble's places promised for a later period (ADR-0008).

One verb per module: `create`, `change`, `cancel`, and `view` to look. Each writes one changeset;
what is promised is proved by the same search and judged by the same commit as what is placed now.
"""
