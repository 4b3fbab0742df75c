"""Databases of the three kinds, for the tests that every kind has to pass.

A test or a module that needs fewer says which:
`@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)`.
"""

from pathlib import Path

import pytest

from moorage.testing.ledger_copy import new_database

KINDS = ("sqlite", "postgres", "mariadb")


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own, up to date."""
    if request.param == "sqlite":
        return new_database(tmp_path)
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture(params=KINDS)
def new_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database that nobody has opened yet."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return str(request.getfixturevalue(f"{request.param}_databases").empty())
