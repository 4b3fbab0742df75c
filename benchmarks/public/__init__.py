"""Public traces replayed against Moorage's engine and against schedulers of one member at a time.

`applications` reads the trace of applications with and without GPUs and makes others of its shape;
`admission` lets every way of placing fill a fleet of its own with them, and `growth` lets them come
and go in time. `gpu_shares` reads a trace of tasks that share GPUs, `gangs` has the numbers of a
test of gangs on racks. `fragmentation` and `share_weighers` are the peers that the field compares
with; `report` keeps the results and writes the page.
"""
