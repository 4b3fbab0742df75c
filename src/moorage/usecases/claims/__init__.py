"""Claims: a server takes a held place; its outcome, confirmation, comparison of descriptions.

Nothing here places a member, except one whose server differs from its description.
"""
