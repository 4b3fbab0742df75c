"""Pictures in files: well-formed, escaped, needing nothing else, and of what the API answers."""

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert
from tests.api.native import test_fleet_map as maps
from tests.api.native import test_timeline as timelines

from moorage.cli.fleet_svg import fleet_page, fleet_svg
from moorage.cli.gantt_svg import gantt_svg
from moorage.cli.placement_svg import placement_svg
from moorage.cli.svg import Svg, escaped, fitting, width_of
from moorage.domain.period import parse_instant
from moorage.testing.service import OPERATOR, Service
from moorage.wire.members import Member

SPACE = "{http://www.w3.org/2000/svg}"
MARKUP = '<script>alert("1")</script>&amp;\x00\x0b\ud800'
NOW = parse_instant("2026-12-02T00:00:00Z")


def parsed(text: str) -> ET.Element:
    """The picture; it must need nothing from elsewhere and run nothing."""
    root = ET.fromstring(text)
    assert root.tag == f"{SPACE}svg"
    for one in root.iter():
        assert one.tag.removeprefix(SPACE) in {
            *("svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "text", "g"),
        }
        assert not any(name.startswith("on") or "href" in name for name in one.attrib)
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"@import|@font-face|url\((?!#)", text)
    named = {one.attrib["id"] for one in root.iter() if "id" in one.attrib}
    assert set(root.attrib["aria-labelledby"].split()) <= named
    return root


def classes_are_defined(text: str) -> None:
    root = parsed(text)
    style = root.findtext(f"{SPACE}style") or ""
    used = {name for one in root.iter() for name in one.attrib.get("class", "").split()}
    assert {name for name in used if f".{name}{{" not in style} == set()


def texts(root: ET.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SPACE}text")]


def titles(root: ET.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SPACE}title")]


@pytest.fixture
def rooms() -> Any:
    made = Service(maps.FLEET)
    yield made
    made.close()


@pytest.fixture
def service() -> Any:
    made = Service(timelines.FLEET)
    yield made
    made.close()


@given(st.text())
def test_any_text_is_shown_as_text(said: str) -> None:
    svg = Svg(said, said, {})
    svg.open(said)
    svg.text(1, 2, said)
    svg.close()
    root = parsed(svg.written(10, 10))
    kept = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", said)
    # XML reads every end of a line as a newline.
    kept = kept.replace("\r\n", "\n").replace("\r", "\n")
    assert texts(root) == [kept]
    assert titles(root) == [kept, kept]


@given(st.text(alphabet="ab<中文é", max_size=40), st.floats(0, 200))
def test_what_is_cut_fits(said: str, room: float) -> None:
    assert width_of(fitting(said, room)) <= max(room * 2, 0)
    if width_of(said) <= room:
        assert fitting(said, room) == said


def test_the_map_has_every_host_with_its_state(rooms: Service) -> None:
    hosts = {one["name"]: one["uuid"] for one in maps.hosts_of(rooms)}
    maps.allocate(rooms, hosts["h1"], VCPU=8)
    maps.allocate(rooms, hosts["h2"], VCPU=1)
    rooms.call("POST", "/hosts/h3/close", {"close": {"reason": "x"}}, caller=OPERATOR)
    found = maps.got(rooms)
    text = fleet_svg(found)
    classes_are_defined(text)
    root = parsed(text)
    said = dict(one.split(": ", 1) for one in titles(root) if ": " in one)
    assert said["h1"] == "100 %"
    assert said["h2"] == "12 %"
    assert said["h3"] == "0 %, closed"
    assert said["outside"] == "none of it"
    assert said["r1"] == "4 hosts"
    assert {"az1", "az2", "r1", "r2", "r10"} <= set(texts(root))
    assert "1 closed" in (root.findtext(f"{SPACE}desc") or "")


def test_many_hosts_are_squares_of_few_paths() -> None:
    number = 3_000
    flags = [n % 256 for n in range(number)]
    found = maps_of([f"h{n}" for n in range(number)], [n % 256 for n in range(number)], flags)
    text = fleet_svg(found)
    classes_are_defined(text)
    root = parsed(text)
    assert len(list(root.iter())) < 700
    squares = sum(
        len(re.findall("M", one.attrib["d"]))
        for one in root.iter(f"{SPACE}path")
        if re.fullmatch(r"f\d+|none", one.attrib.get("class", ""))
    )
    assert squares == number


def maps_of(names: list[str], fill: list[int], flags: list[int]) -> dict[str, Any]:
    """A map in ten blocks, as the API would answer it."""
    import base64

    import numpy as np

    each = len(names) // 10
    return {
        "at": "2026-12-01T00:00:00Z",
        "class": "VCPU",
        "level": "rack",
        "parents": {"level": "zone", "name": ["az1"]},
        "blocks": {
            "name": [f"r{n}" for n in range(10)],
            "parent": [0] * 9 + [-1],
            "first": [n * each for n in range(10)],
            "count": [each] * 10,
        },
        "hosts": {
            "name": names,
            "fill": base64.b64encode(np.array(fill, dtype=np.uint8).tobytes()).decode(),
            "flags": base64.b64encode(np.array(flags, dtype="<u2").tobytes()).decode(),
            "fits": None,
        },
    }


class Page(HTMLParser):
    """The cells of a page's table, and its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self._in: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self._in = tag
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in = None

    def handle_data(self, data: str) -> None:
        if self._in in {"td", "th"}:
            self.rows[-1][-1] += data


def test_the_page_says_in_its_table_what_the_picture_shows(rooms: Service) -> None:
    rooms.call("POST", "/hosts/h3/close", {"close": {"reason": "x"}}, caller=OPERATOR)
    found = maps.got(rooms)
    page = Page(fleet_page(found))
    assert page.rows[0] == ["zone", "rack", "host", "booked", "state"]
    assert len(page.rows) == 1 + len(found["hosts"]["name"])
    assert ["az2", "r1", "h3", "0%", "closed"] in page.rows
    assert ["az1", "r2", "h2", "0%", "open"] in page.rows
    assert "script" not in page.tags


def test_markup_in_names_is_text_everywhere(rooms: Service) -> None:
    found = maps.got(rooms)
    found["hosts"]["name"] = [MARKUP for _ in found["hosts"]["name"]]
    found["blocks"]["name"] = [MARKUP for _ in found["blocks"]["name"]]
    found["parents"]["name"] = [MARKUP for _ in found["parents"]["name"]]
    parsed(fleet_svg(found))
    page = Page(fleet_page(found))
    assert "script" not in page.tags
    shown = '<script>alert("1")</script>&amp;\ufffd\ufffd\ufffd'
    assert page.rows[1][2] == shown
    members = [member("web[0]", status="active", rack=MARKUP, host=MARKUP)]
    assert shown in titles(parsed(placement_svg(MARKUP, members)))[0]


def test_the_chart_has_a_bar_for_each_thing_in_its_lane(service: Service) -> None:
    for name, first, last in (("a", 1, 5), ("b", 3, 7), ("c", 5, 6)):
        days = f"2026-12-0{first}T00:00:00Z", f"2026-12-0{last}T00:00:00Z"
        more: dict[str, Any] = {"lead": "PT6H"} if name == "b" else {}
        timelines.leased(service, name, *days, **more)
    timelines.offered(service)
    timelines.away(service, "h1", "2026-12-10T00:00:00Z", None, kind="decommission", reason="<b>")
    found = timelines.got(service, OPERATOR, rows="project", all_projects="true")["timeline"]
    text = gantt_svg(found, NOW)
    classes_are_defined(text)
    root = parsed(text)
    said = [one for one in titles(root) if ": " in one]
    assert "a: lease, pending, 2026-12-01T00:00Z to 2026-12-05T00:00Z" in said
    assert "maybe: offer, offered, 2026-12-20T00:00Z to 2026-12-21T00:00Z" in said
    assert any(one.endswith("absence, planned, 2026-12-10T00:00Z") for one in said)
    bars = {
        name: next(
            one
            for group in root.iter(f"{SPACE}g")
            if (group.findtext(f"{SPACE}title") or "").startswith(f"{name}:")
            for one in group.iter(f"{SPACE}rect")
        ).attrib
        for name in "abc"
    }
    left = {name: float(one["x"]) for name, one in bars.items()}
    right = {name: left[name] + float(one["width"]) for name, one in bars.items()}
    assert left["a"] < left["b"] < right["a"] == pytest.approx(left["c"], abs=0.2)
    top = {name: float(one["y"]) for name, one in bars.items()}
    assert top["a"] == top["c"] < top["b"]
    assert "now, 2026-12-02T00:00:00Z" in titles(root)


def test_an_empty_chart_says_so(service: Service) -> None:
    found = timelines.got(service)["timeline"]
    assert "nothing in this period" in texts(parsed(gantt_svg(found, NOW)))


def member(name: str, *, status: str = "held", **domains: str) -> Member:
    role = name.partition("[")[0]
    body = {"name": name, "role": role, "kind": "server", "status": status, "server_id": None}
    return convert(
        {
            **body,
            "domains": domains,
            "created_at": "",
            "updated_at": "",
            "generation": 0,
            "links": [],
        },
        Member,
    )


def test_members_are_chips_on_their_racks() -> None:
    some = [
        member("web[0]", status="active", rack="r1", host="h1"),
        member("web[1]", rack="r1", host="h2"),
        member("db[0]", status="building", rack="r2", host="h3"),
        member("db[1]"),
    ]
    text = placement_svg("shop", some)
    classes_are_defined(text)
    root = parsed(text)
    assert titles(root)[0] == "shop: 3 members on 2 racks"
    assert root.findtext(f"{SPACE}desc") == "rack r1: web[0], web[1]; rack r2: db[0]."
    assert {"rack r1", "rack r2", "h1", "web[1]", "not placed: db[1]"} <= set(texts(root))
    assert "web[0]: active" in titles(root)


def test_many_members_of_a_host_go_on_below_each_other() -> None:
    some = [member(f"web[{n}]", rack="r1", host="h1") for n in range(30)]
    root = parsed(placement_svg("shop", some))
    chips = [
        (float(one.attrib["x"]), float(one.attrib["y"]), float(one.attrib["width"]))
        for one in root.iter(f"{SPACE}rect")
        if one.attrib.get("class") == "held" and one.attrib["width"] != "26"
    ]
    assert len(chips) == len({chip[:2] for chip in chips}) == 30
    assert max(x + wide for x, _, wide in chips) <= 16 + 180


def test_attributes_are_escaped() -> None:
    assert escaped("\"<&'>") == "&quot;&lt;&amp;&#x27;&gt;"


@pytest.mark.process
def test_the_commands_write_files(sim: Any) -> None:
    svg = sim("fleet", "show", "-f", "svg")
    assert svg.status == 0, svg
    assert "h9" in texts(parsed(svg.out))
    page = sim("fleet", "show", "-f", "html", "--resource", "MEMORY_MB", "--at", "+7d")
    assert "MEMORY_MB booked at 2026-11-28" in page.out
    assert {row[2] for row in Page(page.out).rows[1:]} >= {f"h{n}" for n in range(1, 10)}
    made = sim(
        *("lease", "create", "--name", "svg-week", "--flavor", "m1.small", "--count", "2"),
        *("--start", "2026-12-07T08:00Z", "--duration", "4d"),
    )
    assert made.status == 0, made
    assert "svg-week" in sim("lease", "list", "--from", "2026-12-11T07:00Z").out
    assert "svg-week" not in sim("lease", "list", "--from", "2026-12-11T08:00Z").out
    assert "svg-week" not in sim("lease", "list", "--to", "2026-12-07T08:00Z").out
    assert sim("offer", "list", "--from", "2026-12-11", "--to", "2026-12-12").status == 0
    chart = sim("lease", "gantt", "-f", "svg")
    assert "svg-week" in texts(parsed(chart.out))
    racks = sim("lease", "gantt", "-f", "svg", "--rows", "rack", "--all-projects")
    assert {"r1", "r2", "r3"} & set(texts(parsed(racks.out)))
    placed = sim("ensemble", "create", "--server", "m1.small", "--name", "svg-shop")
    assert placed.status == 0, placed
    picture = sim("ensemble", "show", "svg-shop", "--map", "-f", "svg")
    assert titles(parsed(picture.out))[0] == "svg-shop: 1 member on 1 rack"


@pytest.mark.process
def test_what_has_no_picture_is_refused(sim: Any) -> None:
    assert sim("ensemble", "create", "--server", "m1.small", "--name", "svg-none").status == 0
    for words in (
        ("ensemble", "show", "svg-none", "-f", "svg"),
        ("ensemble", "list", "-f", "svg"),
        ("fleet", "show", "--at", "+1d"),
        ("lease", "gantt", "--rows", "host"),
        ("lease", "gantt", "-f", "html"),
    ):
        refused = sim(*words)
        assert (refused.status, refused.out) == (2, ""), (words, refused.err)
    tenant = sim.as_tenant("project-a")
    assert tenant("fleet", "show", "-f", "svg").status == 5
    assert tenant("lease", "gantt", "-f", "svg", "--rows", "host").status == 5
    unknown = sim("fleet", "show", "-f", "svg", "--resource", "VGPU")
    assert (unknown.status, unknown.out) == (1, "")
    assert "no such resource class: VGPU" in unknown.err
