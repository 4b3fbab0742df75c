"""Mutation of rules: whether the tests notice a wrong rule, before and after its code moves.

A fixed draw of conditions (`drawn.json`) is broken one at a time, and the tests of its area are
run on each. The verdicts are kept, so that those before a restructuring can be compared with those
after it. README.md says how.
"""
