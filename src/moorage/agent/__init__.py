"""`moorage-agent`: finds what a compute node has, and keeps its resource providers in step.

Here live: reading a node's files, the facts made of them, the providers that follow from facts and
configuration, the plan that leads from the providers there are to those, and the program. It needs
the base install only: nothing of the server side, no library of devices, no compiler.
"""
