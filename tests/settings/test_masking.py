"""No secret of a URL is shown, wherever in it it stands; everything else is."""

import string
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.settings import BadSetting, read
from moorage.settings.effective_values import masked

SECRETS = (
    *("password", "passwd", "sslpassword", "PASSWORD", "p%61ssword", "ssl_key_password"),
    *("oauth_client_secret", "scram_client_key", "scram_server_key", "access_token", "api_key"),
)
PLAIN = ("sslmode", "sslkey", "ssl_key", "ssl_ca", "host", "connect_timeout", "unix_socket")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://moorage@db/moorage?password=hunter2", "moorage@db/moorage?password=***"),
        ("mysql://db/m?ssl_ca=/ca.pem&passwd=hunter2", "db/m?ssl_ca=/ca.pem&passwd=***"),
        (
            "postgresql://db/m?sslpassword=hunter2&sslkey=/etc/key.pem",
            "db/m?sslpassword=***&sslkey=/etc/key.pem",
        ),
        ("postgresql://db/m?p%61ssword=hunter2&host=b:1", "db/m?p%61ssword=***&host=b:1"),
        ("postgresql://me:hunter2@db/m?password=hunter2", "me:***@db/m?password=***"),
        ("postgresql://me@corp:hunter2@db/m", "me@corp:***@db/m"),
        ("postgresql://me:hunter2@hunter2@db/m", "me:***@db/m"),
        ("postgresql://me:a?b/hunter2@db/m", "me:***@db/m"),
        ("postgresql://db/m?password=a;hunter2=3?x", "db/m?password=***"),
        ("https://hook.example/x?a=1;token=hunter2", "hook.example/x?a=1;token=***"),
        ("sqlite:////var/lib/moorage/ledger.db", "/" + "/var/lib/moorage/ledger.db"),
        ("postgresql://me@db:5432/m?sslmode=require", "me@db:5432/m?sslmode=require"),
    ],
)
def test_what_is_shown_of_a_url(url: str, shown: str) -> None:
    assert masked(url) == f"{url.partition('://')[0]}://{shown}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:hunter2@ss word@:host", "postgresql://user:***@:host"),
        ("postgresql://user:hun@ss/wo@ter2@host/db", "postgresql://user:***@host/db"),
        ("postgres:/user:hunter2@h", "postgres:***@h"),
        ("postgresql:///user:hunter2@h/db", "postgresql:***@h/db"),
        ("postgresql//user:hunter2@h", "postgresql//user:***@h"),
        ("postgresql:user:hunter2@h", "postgresql:***@h"),
        ("user:hunter2@h", "user:***@h"),
        ("postgresql://us/er:hunter2@h/db", "postgresql:***@h/db"),
        ("postgresql://user:hunter2", "postgresql://user:***"),
        ("postgresql://user:hunter2/db", "postgresql://user:***"),
        ("postgres:/user:hunter2", "postgres:/user:***"),
        ("postgresql://user:hunter2 @", "postgresql://user:***@"),
        # These are none, and shown.
        ("postgresql://me@one:1,two:2/db", "postgresql://me@one:1,two:2/db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("sqlite:////srv/a:b@c.db", "sqlite:////srv/a:b@c.db"),
        ("sqlite://", "sqlite://"),
    ],
)
def test_what_is_shown_of_what_is_no_url(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert masked(repr(url)) == repr(shown) or shown.endswith("***")
    assert "hunter2" not in masked(repr(url))


@given(
    st.text(min_size=1).map(lambda text: f"§{text}"),
    st.sampled_from(SECRETS),
    st.dictionaries(st.sampled_from(PLAIN), st.text(string.printable)),
)
def test_a_secret_argument_hides_among_others(
    secret: str, name: str, others: dict[str, str]
) -> None:
    quoted = quote(secret)
    plain = urlencode(others)
    for query in (f"{name}={quoted}&{plain}", f"{plain}&{name}={quoted}"):
        shown = masked(f"postgresql://me:{quoted}@db/moorage?{query}")
        assert shown.startswith("postgresql://me:***@db/moorage?")
        assert quoted not in shown
        assert plain in shown


@pytest.mark.parametrize("name", ["password", "passwd", "sslpassword"])
def test_settings_are_shown_without_it(name: str) -> None:
    effective = read({"database": f"postgresql://me@db/moorage?{name}=hunter2"}, {}, ())
    assert "hunter2" not in "\n".join(effective.lines())
    assert "hunter2" not in str(list(effective.described()))
    assert f"me@db/moorage?{name}=***" in str(list(effective.described()))


def test_a_refused_address_is_told_without_it() -> None:
    with pytest.raises(BadSetting, match=r"me:\*\*\*@h") as refused:
        read({"webhook": "ftp://me:hunter2@h?token=hunter3"}, {}, ())
    assert "hunter" not in str(refused.value)
