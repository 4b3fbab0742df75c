"""One verb per module: read, decide, commit. Project scoping is enforced here.

Packages, from the lowest: `shared`; `decide` (joint decisions); `claims`; `refusals`; `preemption`
and `relocation` (strategies that make room); `ensembles`, `leases`, `offers`, `series`, `waitlist`,
`capacity`, `events`, `blazar` (their verbs); `tickets` (held places by a flavor's class); `ledger`
(Placement's verbs, and imports); `effects` (work stored for later). Use cases know ports
(`ports.py`), never an adapter: no SQL, HTTP or framework.
"""
