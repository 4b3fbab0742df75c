"""Relocation: leases move before their start to make room, or after a failure of their hosts.

The package has strategies of decisions and the changes they write, and no use case of a lease.
"""
