"""What Nova asks of Placement for a server: flavors, images, devices, and the rules between them.

Pure translation, after the rules of Nova 34: no placement, and nothing that calls Nova.
`server_request.translate` is the entry point; every way in uses it.
"""
