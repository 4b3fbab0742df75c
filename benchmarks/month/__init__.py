"""A month of a cloud in which capacity is leased ahead, lived through three ways.

`plan` makes what is asked for, from a seed; `ways` says how a cloud deals with it; `world` lets it
happen, through the service's own use cases and workers with a clock that is set; `found` adds up;
`pictures` and `report` show it.
"""
