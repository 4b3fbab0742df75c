"""The database schema: tables, migrations, and the upgrade from an older schema.

No statement that reads or writes the ledger lives here.
"""
