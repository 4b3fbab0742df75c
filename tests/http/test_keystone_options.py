"""The section [keystone_authtoken], judged before anything is asked of Keystone."""

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.http.auth_strategy import auth_strategy
from moorage.http.config import CallersConfig

# webob, below keystonemiddleware, still imports a module that Python is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

GOOD = {"auth_type": "password", "auth_url": "http://keystone.example/v3", "username": "moorage"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "option auth_type of [keystone_authtoken]: it must say how"),
        (GOOD | {"auth_type": "pasword"}, "auth_type of [keystone_authtoken]: there is no pasword"),
        (GOOD | {"auth_url": ""}, "auth_url of [keystone_authtoken]: it must say where"),
        (GOOD | {"pasword": "s3cret"}, "pasword of [keystone_authtoken]: keystonemiddleware has"),
        (
            GOOD | {"token_cache_time": "s3cret"},
            "token_cache_time of [keystone_authtoken]: this is",
        ),
    ],
)
def test_what_cannot_be_used_is_named_and_not_quoted(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        auth_strategy("keystone", CallersConfig(keystone=options))
    assert problem in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_old_names_and_dollars_are_understood() -> None:
    options = GOOD | {"password": "pa$$word", "www_authenticate_uri": "http://public.example/v3"}
    del options["username"]
    made = auth_strategy("keystone", CallersConfig(keystone=options | {"user-name": "moorage"}))
    refused = made.unauthorized_bare("req-1")
    assert dict(refused.headers)["www-authenticate"] == 'Keystone uri="http://public.example/v3"'


def test_without_a_token_keystone_is_not_asked() -> None:
    made = auth_strategy(
        "keystone", CallersConfig(keystone=GOOD | {"auth_url": "http://127.0.0.1:1"})
    )
    assert made.authenticate({"REQUEST_METHOD": "GET"}, "req-1") is None
    assert made.authenticate({"HTTP_X_AUTH_TOKEN": ""}, "req-1") is None


def test_a_strategy_without_its_settings_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="token-file lacks its settings"):
        auth_strategy("token-file", CallersConfig())
