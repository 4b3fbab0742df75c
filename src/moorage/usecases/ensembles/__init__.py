"""Ensembles: create, change, members, policies, templates, and Heat templates.

Searching for places is in `decide`.
"""
