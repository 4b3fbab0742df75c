"""MariaDB: one server, and arguments of the driver, in the database URL."""

import pytest

from moorage.domain.errors import BadConfiguration, InvalidDescription
from moorage.store import open_store
from moorage.store.placement_database import read_placement

ONE_SERVER = "names one server, .* for a cluster name a proxy"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://u@/d?host=a:3306&host=b:3306", ONE_SERVER),
        ("mariadb://u@/d?host=a", ONE_SERVER),
        ("mysql://u@a/d?host=b", ONE_SERVER),
        ("mysql://u@a/d?port=3307", ONE_SERVER),
        ("mysql://u@a,b/d", ONE_SERVER),
        ("mysql://u@a,b:3306/d", ONE_SERVER),
        ("mysql://u@a/d?foo=bar", "no argument foo"),
        ("mysql://u@/d?Host=a", "no argument Host"),
        ("mysql://u@a/d?compress=1", "no argument compress"),
        ("mysql://u@a/d?charset=a&charset=b", "gives charset twice"),
        ("mysql://u@a/d?connect_timeout=abc", "connect_timeout in the URL is no number"),
        ("mysql://u@a/d?read_timeout=0", "read_timeout in the URL is no number"),
    ],
)
def test_a_mistake_in_the_url_is_refused(url: str, words: str) -> None:
    with pytest.raises(BadConfiguration, match=words):
        open_store(url)


@pytest.mark.parametrize(
    ("query", "words"), [("?host=a&host=b", ONE_SERVER), ("?foo=bar", "no argument foo")]
)
def test_a_mistake_in_the_url_of_placements_database_is_refused(query: str, words: str) -> None:
    with pytest.raises(InvalidDescription, match=words) as told:
        read_placement(f"mysql+pymysql://u@/d{query}")
    assert told.value.path == "from"
