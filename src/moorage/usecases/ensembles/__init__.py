"""Ensembles: create, change, members, policies, templates, and Heat templates.

How places are found is not here; see `decide`.
"""
