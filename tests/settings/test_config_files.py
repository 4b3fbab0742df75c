"""Several configuration files, and the options of OpenStack's libraries in them."""

import importlib
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_db import options as oslo_db
from oslo_log import _options as oslo_log
from oslo_policy import opts as oslo_policy

from moorage.options import SETTINGS
from moorage.options.oslo import LIBRARY_OPTIONS
from moorage.settings import BadSetting, configure, read

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
        return str(path)

    return write


def test_later_files_win_and_repeated_settings_add_up(write: Write, tmp_path: Path) -> None:
    first = write("one.conf", "[DEFAULT]\nport = 1\nthreads = 20\nmetrics_from = 10.0.0.1\n")
    second = write("two.conf", "[DEFAULT]\nport = 2\nmetrics_from = 10.0.0.2\n")
    write("d/20.conf", "[DEFAULT]\nthreads = 40\nmetrics_from = 10.0.0.4\n")
    last = write("d/10.conf", "[DEFAULT]\nthreads = 30\nworkers = 3\n")
    write("d/30.txt", "[DEFAULT]\nnobody reads this\n")
    found = read({"config_file": [first, second], "config_dir": [str(tmp_path / "d")]}, {}, ())
    assert [found.values[name] for name in ("port", "threads", "workers")] == [2, 40, 3]
    assert found.values["metrics_from"] == ["10.0.0.1/32", "10.0.0.2/32", "10.0.0.4/32"]
    assert found.sources["workers"] == f"file {last}"
    environ = {
        "MOORAGE_CONFIG_FILE": f"{first},{second}",
        "MOORAGE_CONFIG_DIR": str(tmp_path / "d"),
    }
    assert read({}, environ, ()) == found
    alone = read({"config_dir": [str(tmp_path / "d")]}, {}, (first,))
    assert (alone.values["port"], alone.values["threads"]) == (8778, 40)


def test_the_directory_beside_the_default_file_is_read_after_it(
    write: Write, tmp_path: Path
) -> None:
    file = write("moorage.conf", "[DEFAULT]\nport = 1\nthreads = 20\n")
    write("moorage.conf.d/site.conf", "[DEFAULT]\nthreads = 40\n")
    found = read({}, {}, (file,))
    assert (found.values["port"], found.values["threads"]) == (1, 40)
    Path(file).unlink()
    found = read({}, {}, (file, "/nowhere"))
    assert (found.values["port"], found.values["threads"]) == (8778, 40)
    assert read({"config_file": [write("own.conf", "")]}, {}, (file,)).values["threads"] == 16


@pytest.mark.parametrize(
    ("given", "environ", "problem"),
    [
        ({"config_dir": ["/nowhere"]}, {}, "--config-dir): there is no directory /nowhere"),
        ({}, {"MOORAGE_CONFIG_DIR": "/nowhere"}, "MOORAGE_CONFIG_DIR): there is no directory"),
        ({}, {"MOORAGE_CONFIG_FILE": "/nowhere"}, "MOORAGE_CONFIG_FILE): there is no file"),
    ],
)
def test_what_is_named_must_be_there(
    given: dict[str, list[str]], environ: dict[str, str], problem: str
) -> None:
    with pytest.raises(BadSetting) as caught:
        read(given, environ, ())
    assert problem in str(caught.value)


def test_options_of_libraries_are_our_settings(write: Write, tmp_path: Path) -> None:
    file = write(
        "moorage.conf",
        "[DEFAULT]\ndebug = True\nlogdir = /var/log/moorage\nuse_json = True\n"
        "[oslo_policy]\npolicy_file = rules.yaml\nenforce_new_defaults = True\n"
        "[oslo_middleware]\nmax_request_body_size = 200000\n"
        "[cors]\nallowed_origin = https://a.example, https://b.example\nallow_methods = GET,PUT\n"
        "allow_credentials = False\nmax_age = 60\n"
        "[database]\nconnection = mysql+pymysql://m:p@db/moorage?charset=utf8\n",
    )
    found = read({}, {}, (file,))
    made = configure(found)
    assert made.server.log.level == "debug"
    assert made.server.log.form == "json"
    assert (made.server.log.file, made.server.log.stderr) == ("/var/log/moorage/moorage.log", False)
    assert made.rules.file == str(tmp_path / "rules.yaml")
    assert made.rules.new_defaults
    assert made.server.bounds.body == 200_000
    assert made.server.cors.allowed_origins == {"https://a.example", "https://b.example"}
    assert made.server.cors.allow_methods == {"GET", "PUT"}
    assert not made.server.cors.allow_credentials
    assert made.database == "mysql://m:p@db/moorage?charset=utf8"
    assert found.sources["database"] == f"file {file}, [database] connection"
    assert found.ignored == ()
    assert read({"debug": "false", "log_level": "error"}, {}, (file,)).values["debug"] is False


def test_our_own_name_of_a_later_file_wins_over_a_librarys(write: Write) -> None:
    first = write("one.conf", "[database]\nconnection = sqlite:////a\n")
    second = write("two.conf", "[DEFAULT]\ndatabase = sqlite:////b\n")
    for order, expected in (([first, second], "b"), ([second, first], "a")):
        assert read({"config_file": order}, {}, ()).values["database"] == f"sqlite:////{expected}"
    both = write("both.conf", "[DEFAULT]\ndatabase = x\n[database]\nconnection = y\n")
    with pytest.raises(BadSetting, match=r"database and \[database\] connection are the same"):
        read({}, {}, (both,))


def test_what_has_no_meaning_here_is_accepted_and_named(write: Write) -> None:
    file = write(
        "moorage.conf",
        "[DEFAULT]\nuse_syslog = False\n"
        "[oslo_messaging_rabbit]\nheartbeat_rate = 3\nssl = True\n"
        "[oslo_middleware]\nenable_proxy_headers_parsing = True\n"
        "[database]\nmax_pool_size = 5\n",
    )
    found = read({}, {}, (file,))
    told = "\n".join(found.ignored)
    assert len(found.ignored) == 4
    for words in (
        f"use_syslog (file {file}): the log goes to standard error",
        f"section [oslo_messaging_rabbit] (file {file}): this service does not use",
        "[oslo_middleware] enable_proxy_headers_parsing",
        "[database] max_pool_size",
    ):
        assert words in told
    assert "`trusted_proxies`" in told


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[oslo_policy]\npolcy_file = x\n", "setting [oslo_policy] polcy_file"),
        ("[cors]\nallowed_origins = x\n", "there is no such setting"),
        ("[oslo_policy]\npolicy_dirs = policy.d\n", "put them into that file"),
        ("[cors]\nallow_credentials = perhaps\n", "must be true or false: 'perhaps'"),
        ("[cors]\nallowed_origin = nonsense\n", "setting cors_allowed_origin"),
        ("[DEFAULT]\nuse_json = perhaps\n", "setting use_json"),
        ("[DEFAULT]\nrpc_response_timeout = 60\n", "setting rpc_response_timeout"),
    ],
)
def test_what_nobody_would_read_is_refused_by_name(write: Write, text: str, problem: str) -> None:
    file = write("moorage.conf", text)
    with pytest.raises(BadSetting) as caught:
        read({}, {}, (file,))
    assert problem in str(caught.value)
    assert file in str(caught.value)


def test_no_option_of_the_libraries_is_unknown() -> None:
    known = {(one.section, one.name) for one in LIBRARY_OPTIONS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of webob, for a newer Python
        oslo_middleware = importlib.import_module("oslo_middleware.opts")
    known |= {("DEFAULT", setting.name) for setting in SETTINGS}
    theirs = {
        (section or "DEFAULT", option.dest)
        for listed in (oslo_log, oslo_policy, oslo_middleware, oslo_db)
        for section, options in listed.list_opts()
        for option in options
    }
    unused = ("healthcheck", "oslo_middleware_tracing")
    assert {one for one in theirs - known if one[0] not in unused} == set()
    settings = {setting.name for setting in SETTINGS}
    for one in LIBRARY_OPTIONS:
        assert bool(one.setting) != bool(one.reason), one
        assert one.setting in settings | {""}, one


def test_credentials_may_be_in_a_section_of_their_own(write: Write) -> None:
    file = write(
        "moorage.conf",
        "[DEFAULT]\nauth = keystone\n"
        "[keystone_authtoken]\nauth_section = service\nmemcached_servers = m:11211\n"
        "[service]\nauth_type = password\nauth_url = http://k\npassword = hidden\n",
    )
    found = read({}, {}, (file,))
    assert found.keystone == {
        "auth_type": "password",
        "auth_url": "http://k",
        "password": "hidden",
        "memcached_servers": "m:11211",
    }
    assert "hidden" not in "\n".join(found.lines())
    broken = write("broken.conf", "[nova]\nauth_section = service\n")
    with pytest.raises(BadSetting, match=r"there is no section \[service\]"):
        read({}, {}, (broken,))
