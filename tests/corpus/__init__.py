"""Requests to every route of every dialect and their answers, recorded and compared for good."""
