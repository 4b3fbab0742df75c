"""What the service tells about itself while it runs: metrics, and traces where they are asked for.

Here live the table of metrics, the instruments that count, and the wrappers that look over the
shoulder of the store and the solver. Nothing here changes what it watches, and no other part
imports it: `app` puts it in between.
"""
