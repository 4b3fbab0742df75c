"""One module for each source of facts: the patterns of its files, and `parse`, which is pure.

A probe never raises for what it reads: what cannot be understood is a caution. It decides nothing;
what becomes of a fact is said by the configuration and `moorage.agent.node_providers`.
"""
