"""Accept and Content-Type, as far as the dialects need them."""

import pytest

from moorage.http.negotiation import accepts, media_type


@pytest.mark.parametrize(
    ("header", "welcome"),
    [
        (None, True),
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/*", True),
        ("text/html, */*;q=0.8", True),
        ("text/html", False),
        ("text/html,application/xml;q=0.9", False),
        ("*/*, application/json;q=0", False),
        ("application/json;q=nonsense", False),
        ("nonsense", False),
    ],
)
def test_is_json_welcome(header: str | None, welcome: bool) -> None:  # noqa: FBT001 - a table
    assert accepts(header, "application/json") is welcome


@pytest.mark.parametrize(
    ("header", "bare"),
    [
        (None, ""),
        ("", ""),
        ("application/json", "application/json"),
        ("Application/JSON ; charset=utf-8", "application/json"),
    ],
)
def test_content_type_without_parameters(header: str | None, bare: str) -> None:
    assert media_type(header) == bare
