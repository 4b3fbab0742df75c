"""Public traces replayed against Moorage's engine and against schedulers of one member at a time.

`applications` reads the trace of applications with and without GPUs and makes others of its shape;
`fragmentation` is the peer that the field compares with; `admission` lets every way of placing fill
a fleet of its own; `report` keeps the results and writes the page.
"""
