"""Preemption: selecting victims for a lease, ending them early, and restoring their ends later.

The package has strategies of decisions and the changes they write. It does not import
`relocation` or the use cases of leases.
"""
