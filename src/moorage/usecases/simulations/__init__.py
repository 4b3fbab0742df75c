"""What would be: changes of the fleet and of ensembles that are supposed, and what is lost by them.

Not the simulator of `moorage sim`, which serves a fleet of its own: a simulation starts from the
ledger as it is, and writes nothing.
"""
