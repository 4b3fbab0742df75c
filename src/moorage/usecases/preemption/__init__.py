"""Preemption: selecting victims for a lease, ending them early, and restoring their ends later.

The package has strategies of decisions and the changes they write. It knows neither `relocation`
nor the use cases of leases.
"""
