"""The page's files: where they are, how they are kept, and what may be done with them."""

import re
from pathlib import Path

import pytest
from tests.web.conftest import Browser, MakeBrowser, code_of, unpacked

from moorage.web.static_files import HOME, StaticFiles

FILES = re.compile(r"/ui/files/[0-9a-f]+/")
LINK = re.compile(r'(?:src|href)="([^"]+)"')
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def links(page: bytes) -> list[str]:
    return LINK.findall(page.decode())


def test_the_page_names_its_files_under_their_digest(browser: MakeBrowser) -> None:
    see = browser()
    page = see("GET", "/ui")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["cache-control"] == "no-cache"
    assert b'data-api="/v1" data-ui="/ui"' in page.body
    assert b"data-embed" not in page.body
    assert b"$" not in page.body
    found = links(page.body)
    (base,) = {FILES.match(one)[0] for one in found}  # type: ignore[index]  # all under one digest
    assert {"main.js", "style.css"} <= {one.removeprefix(base) for one in found}
    for one in found:
        file = see("GET", one)
        assert file.status == 200, one
        assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert file.body == (HOME / one.removeprefix(base)).read_bytes()


def test_the_page_names_every_module_that_it_loads_at_once(browser: MakeBrowser) -> None:
    see = browser()
    named = {FILES.sub("", one) for one in links(see("GET", "/ui").body) if one.endswith(".js")}
    there = {one.relative_to(HOME).as_posix() for one in HOME.rglob("*.js")}
    assert there - named == {"vendor/yaml.js"}, "loaded when a description is read"


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/fleet", "/ui/ensembles/x/y", "/ui/files", "/ui/a.js"]
)
def test_every_other_path_is_the_page(browser: MakeBrowser, path: str) -> None:
    see = browser()
    assert see("GET", path).body == see("GET", "/ui").body


def test_nothing_but_files_of_the_page_is_there(browser: MakeBrowser) -> None:
    see = browser()
    base = links(see("GET", "/ui").body)[0].rpartition("/")[0]
    other = base.replace(base[-3:], "000")
    for path in (
        f"{other}/main.js",
        f"{base}/application.py",
        f"{base}/index.html",
        f"{base}/nothing.js",
        f"{base}/",
        base,
        f"{base}/../main.js",
        f"{base}/../../session_cookie.py",
        f"{base}/lib/../main.js",
        f"{base}//main.js",
        f"{base}/%2e%2e/main.js",
        f"{base}/..\\main.js",
    ):
        assert code_of(see("GET", path)) == (404, "http.not_found"), path


def test_headers_keep_scripts_frames_and_guesses_out(browser: MakeBrowser) -> None:
    see = browser()
    page = see("GET", "/ui")
    for one in (page, *(see("GET", link) for link in links(page.body)), see("GET", "/ui/session")):
        assert one.headers["x-content-type-options"] == "nosniff"
        assert one.headers["referrer-policy"] == "no-referrer"
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["x-frame-options"] == "DENY"
    assert b"<script>" not in page.body
    assert b"style=" not in page.body
    assert b"//" not in b"".join(one.encode() for one in links(page.body)), "nothing from elsewhere"
    assert see("GET", "/ui?embed=1").body == page.body


def test_named_sites_may_show_it_in_a_frame(browser: MakeBrowser) -> None:
    see = browser(embed_origins=["https://horizon.example", "https://skyline.example:8443"])
    framed = see("GET", "/ui/fleet?embed=1")
    assert framed.headers["content-security-policy"].endswith(
        "frame-ancestors https://horizon.example https://skyline.example:8443"
    )
    assert "x-frame-options" not in framed.headers
    assert b"data-embed" in framed.body
    for path in ("/ui/fleet", "/ui/fleet?embed=0", "/ui/fleet?embed=1&embed=1"):
        assert see("GET", path).headers["content-security-policy"] == POLICY


def test_a_browser_that_has_it_is_told_so(browser: MakeBrowser) -> None:
    see = browser()
    for path in ("/ui", links(see("GET", "/ui").body)[-1]):
        seen = {}
        for accepted in ("", "gzip, deflate, br", "gzip;q=0", "*"):
            whole = see("GET", path, accept_encoding=accepted)
            etag = whole.headers["etag"]
            seen[accepted] = etag
            assert whole.headers["vary"] == "accept-encoding"
            again = see("GET", path, accept_encoding=accepted, if_none_match=f'"x", W/{etag}')
            assert (again.status, again.body) == (304, b"")
            assert again.headers["etag"] == etag
            assert again.headers["cache-control"] == whole.headers["cache-control"]
            assert "content-length" not in again.headers
            head = see("HEAD", path, accept_encoding=accepted)
            assert (head.status, head.body) == (200, b"")
            assert head.headers["content-length"] == str(len(whole.body))
            other = see("GET", path, accept_encoding=accepted, if_none_match='"other"')
            assert other.body == whole.body
        assert seen[""] == seen["gzip;q=0"]
        assert seen["*"] == seen["gzip, deflate, br"]


def test_a_large_file_is_sent_in_gzip(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<html lang='en'>$files")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "long.js").write_text("// a\n" * 500)
    found = StaticFiles.read(tmp_path).files["lib/long.js"]
    assert len(found.packed) < len(found.plain) / 10


def test_the_page_is_sent_in_gzip(browser: MakeBrowser) -> None:
    see = browser()
    packed = see("GET", "/ui", accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert unpacked(packed) == see("GET", "/ui").body


def test_the_digest_is_of_names_and_contents(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        for path in tmp_path.iterdir():
            path.unlink()
        for name, text in {"index_html": "$ui", **files}.items():
            (tmp_path / name.replace("_", ".")).write_text(text)
        return StaticFiles.read(tmp_path).digest

    first = digest(main_js="1", style_css="2")
    assert digest(main_js="1", style_css="2") == first
    assert digest(main_js="1", style_css="2", notes_py="no file of the page") == first
    others = {
        digest(main_js="1", style_css="3"),
        digest(main_js="2", style_css="1"),
        digest(other_js="1", style_css="2"),
        digest(index_html="$api", main_js="1", style_css="2"),
    }
    assert len({first, *others}) == 5


def test_only_reading(browser: MakeBrowser) -> None:
    see = browser()
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        answer = see(method, "/ui/fleet")
        assert code_of(answer) == (405, "http.method_not_allowed")
        assert answer.headers["allow"] == "GET, HEAD"
    assert see("PUT", "/ui/session").headers["allow"] == "DELETE, GET, HEAD, POST"


def test_behind_a_proxy_with_a_prefix(browser: MakeBrowser) -> None:
    see = browser(trusted_proxies=["192.0.2.1"])
    see.environ = {"REMOTE_ADDR": "192.0.2.1"}
    proxied = {"x_forwarded_prefix": "/cloud", "x_forwarded_proto": "https"}
    page = see("GET", "/ui", **proxied)
    assert b'data-api="/cloud/v1" data-ui="/cloud/ui"' in page.body
    assert all(one.startswith("/cloud/ui/files/") for one in links(page.body))
    see("POST", "/ui/session", {"role": "reader"}, **proxied)
    assert "; Path=/cloud/; " in see.set_cookies[-1]
    assert see.set_cookies[-1].endswith("; Secure")


def test_at_the_root_and_off(browser: MakeBrowser) -> None:
    see = browser(mount=["web=/"])
    assert b'data-ui=""' in see("GET", "/").body
    assert see("GET", "/fleet").status == 200
    assert see("GET", "/healthz").json == {"status": "alive"}
    assert see("POST", "/session", {"role": "reader"}).status == 200
    for mounts in (["web="], ["native="]):
        gone = browser(mount=mounts)
        assert code_of(gone("GET", "/ui")) == (404, "http.not_found")
        assert gone("GET", "/ui/session").status == 404
        assert "web" not in {one["name"] for one in gone("GET", "/").json["services"]}


def test_without_the_page_a_cookie_says_nothing(browser: MakeBrowser) -> None:
    see = browser()
    see.login(role="admin")
    off = Browser(browser(mount=["web="]).client, see.cookies, session=see.session)
    assert see("GET", "/v1/ensembles").status == 200
    assert off("GET", "/v1/ensembles").status == 401
