"""The ledger at one revision as columns: snapshots, provider trees, domains, filters.

No request is answered here.
"""
