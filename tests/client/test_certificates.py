"""Whose certificates are trusted."""

import ssl

import pytest

from moorage.client.certificates import trusted_at


def test_over_plain_http_no_authority_is_read_and_none_is_trusted() -> None:
    found = trusted_at("http://10.0.0.1:8778/placement")
    assert isinstance(found, ssl.SSLContext)
    assert (found.verify_mode, found.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not found.get_ca_certs()


@pytest.mark.parametrize("trust", [True, False])
def test_over_tls_it_is_what_the_user_says(*, trust: bool) -> None:
    assert trusted_at("https://10.0.0.1", trust=trust) is trust
    assert trusted_at("http://10.0.0.1", trust=False) is False
