"""Series: leases that recur, granted all together or not at all (ADR-0013).

Each occurrence is decided and held like an offer; one changeset turns all of them into leases. The
package has no search or commit of its own besides those of leases and offers.
"""
