"""Devices of hosts: which trees can serve members, and a proof of who gives what.

Nothing here knows policies.
"""
