"""What the words mean.

Only frozen values and pure functions over them live here, made of the standard
library alone. No socket, file, clock, random source, SQL, numpy or framework:
whoever needs the time or an id passes it in.
"""
