"""Shared by several packages of use cases: access, limits, quotas, retries, admission.

Nothing here imports another package of use cases.
"""
