"""Metrics of the service, and traces where they are enabled.

Here live the table of metrics, the instruments that count, and the wrappers around the store's
observer and the solver. Nothing here changes what it observes, and no other part imports it:
`app` puts it in between.
"""
