"""Public traces replayed against Moorage's engine and against schedulers of one member at a time.

`applications` reads the trace of applications with and without GPUs and makes others of its shape;
`admission` lets every way of placing fill a fleet of its own with them, and `growth` lets them come
and go in time. `gpu_shares` reads a trace of tasks that share GPUs, `gangs` has the numbers of a
test of gangs on racks, `cluster_trace` and `reassignment` read the formats of two contests.
`fragmentation` and `share_weighers` are the peers that the field compares with; `groups` lets one
way after the other place groups, `report` keeps the results and writes the page.
"""
