"""Domain types and rules, one noun of the glossary per module.

Only frozen values and pure functions over them live here, made of the standard library alone.
No socket, file, clock, random source, SQL, numpy or framework: the caller passes in the time or an
id where one is needed.
"""
