"""Ensembles: create, change, members, policies, templates, and Heat templates.

The search for places is not here, but in `decide`.
"""
