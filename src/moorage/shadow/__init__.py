"""A shadow: requests go to another Placement service, and Moorage answers them beside it, unseen.

May live here: forwarding requests unchanged, answering them once more from the ledger in the
background, the comparison of both answers, and the report of it. Nothing here answers a client but
with the followed service's own bytes, and nothing writes to that service on its own account.
"""
