"""Series: leases that recur, granted all together or not at all (ADR-0013).

Each occurrence is decided and kept as an offer is; what makes leases of all of them is one
changeset. There is no search and no writing here besides that of leases and offers.
"""
