"""Pure search and arithmetic over columns of numpy, without a Python loop over all providers.

`state` has the snapshot's columns, `time` the arithmetic of periods, `capacity` counts that fit,
`candidates` Placement's search, `joint` problems of whole ensembles, `moves` ordered moves,
`devices` what members need below a host, `explain` why a problem has no solution. No socket, file,
clock, random source, SQL or solver library: time, seeds and ids are arguments.
"""
