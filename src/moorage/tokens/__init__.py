"""Static tokens: what one is, how it is hashed, and the file that lists them.

Shared by the service, which reads the file, and by the command that writes it. Only the hash of a
token is ever stored; no request, no setting and nothing of the ledger is known here.
"""
