"""Placement policies: one file each, discovered by scanning this package and installed plug-ins.

A policy's file holds its parameters, its meaning (`violations`), its compilation to the closed
set of primitives (`post`), its weaker forms, and examples that are run as tests and printed
in the reference. Nothing here knows a solver, a store or a socket.

`discover` lists the policies, `parse` makes one from a caller's statement.
"""

from moorage.policies.registry import discover, parse

__all__ = ["discover", "parse"]
