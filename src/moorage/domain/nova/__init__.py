"""What Nova asks of Placement for a server: flavors, images, devices, and the rules between them.

Only pure translation after the rules of Nova 34 lives here, and the values it needs; no reading of
settings, and nothing that depends on the ledger. `server_request.translate` is the entry point;
every way in uses it.
"""
