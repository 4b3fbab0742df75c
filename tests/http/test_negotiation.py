"""Accept and Content-Type, as far as the dialects need them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.http.negotiation import accepts, accepts_gzip, media_type


@pytest.mark.parametrize(
    ("header", "welcome"),
    [
        (None, True),
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("Application/JSON", True),
        ("Application/JSON; charset=utf-8", False),
        ("application/json;version=1, application/json;q=0.5", True),
        ("*/*;version=1", True),
        ("application/*", True),
        ("text/html, */*;q=0.8", True),
        ("text/html", False),
        ("text/html,application/xml;q=0.9", False),
        ("*/*, application/json;q=0", False),
        ("application/json;q=0, */*", False),
        # What cannot be read is no header.
        ("application/json;q=nonsense", True),
        ("nonsense", True),
        ("text/html application/xml", True),
    ],
)
def test_is_json_welcome(header: str | None, welcome: bool) -> None:  # noqa: FBT001 - a table
    assert accepts(header, "application/json") is welcome


PIECES = (
    *("application/json", "Application/*", "*/*", "text/html", "*", "/", "json", "a/b/c"),
    *(";", " ; ", ";q=0", ";q=0.5", ";Q=1", ";q=2", ";q=0.1234", ";version=1", ';v="a,b"', ";ext"),
    *(",", ", ", " ,,", " ", "\t", "é"),
)


@pytest.mark.filterwarnings("ignore")
@given(st.lists(st.sampled_from(PIECES), max_size=7).map("".join))
def test_headers_are_read_as_the_reference_reads_them(header: str) -> None:
    from webob.acceptparse import create_accept_header

    theirs = create_accept_header(header or None).acceptable_offers(["application/json"])
    assert accepts(header, "application/json") is bool(theirs)


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


@pytest.mark.parametrize(
    "header",
    ["gzip", "GZIP", "deflate, gzip;q=1.0, *;q=0.5", "br;q=1.0, gzip ; q=0.8", "*"],
)
def test_gzip_is_for_those_who_take_it(header: str) -> None:
    assert accepts_gzip(header)


@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "identity", "gzip;q=0", "gzip;q=0.000, *", "*;q=0"),
        *("gzip;q=high", "gzipped", "gzip gzip"),
    ],
)
def test_nobody_else_is_sent_gzip(header: str | None) -> None:
    assert not accepts_gzip(header)
