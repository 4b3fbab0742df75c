"""What every database needs: sessions, SQL text, retries, and locks within a process.

Nothing here knows a table, or which database it is.
"""
