"""How quickly and how well ensembles are placed jointly, at the size of a cloud.

`fleet` and `families` make fleets and requests from seeds, with an answer or a minimal conflict
that is known; `engine` asks Moorage; `checker` and `bounds` judge its answers by a plain reading
of what the policies say, without Moorage's own judgement; `one_at_a_time` places the same members
as a scheduler without joint decisions would, `stream` lets both fill a fleet; `cells` measures and
`report` writes the tables. Public data are in `benchmarks.public`.
"""
