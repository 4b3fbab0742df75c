"""The page in a browser: first views, frames, updates, and what viewers cost the service.

    python -m benchmarks.web_browser
    python -m benchmarks.web_browser --hosts 10000 --leases 1000

Measured in Debian's Chromium without a graphics processor, on loopback, against simulations:

* size of all scripts and styles, gzipped;
* first view of the fleet: from the navigation to the first frame with the map, in a new context;
* frames of panning and zooming: how long the handler of an event takes, in which the map is drawn;
* an update: from the answer to a write until the map has read it, and how many bytes that took;
* the calendar: from the navigation to its first frame, and frames of scrolling;
* viewers: processor time of the service's processes with 50 of them and without, at one write a
  second.
"""

import argparse
import gzip
import json
import random
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.web_fleet import fleet_of
from playwright.sync_api import Browser, sync_playwright
from tests.cli.conftest import Cli, clean
from tests.web.chromium.conftest import CHROMIUM, FLAGS

from moorage.cli.sim_process import end
from moorage.client import registry

NOW = "2026-11-21T09:00:00Z"
VIEWERS = 50
APART = 1.5
"""Seconds between two answers that the page reads, at least: `lib/live.js`."""
FRAMES = """async () => {
  const canvas = document.querySelector(".map canvas");
  const box = canvas.getBoundingClientRect();
  const at = (x, y) => ({bubbles: true, clientX: box.left + x, clientY: box.top + y, pointerId: 1});
  const took = {zoom: [], pan: []};
  const time = (kind, event) => {
    const begun = performance.now();
    canvas.dispatchEvent(event);
    took[kind].push(performance.now() - begun);
  };
  canvas.setPointerCapture = () => {};
  for (let round = 0; round < 120; round += 1) {
    const delta = (round % 60) < 30 ? -40 : 40;
    const turn = {...at(400 + round, 250), deltaY: delta, cancelable: true};
    time("zoom", new WheelEvent("wheel", turn));
    if (round % 10) continue;
    canvas.dispatchEvent(new PointerEvent("pointerdown", at(400, 250)));
    for (let move = 0; move < 20; move += 1) {
      time("pan", new PointerEvent("pointermove", at(400 + move * 9, 250 + move * 4)));
    }
    canvas.dispatchEvent(new PointerEvent("pointerup", at(600, 330)));
    await new Promise(requestAnimationFrame);
  }
  return took;
}"""
DRAWN = """new MutationObserver((_, observer) => {
  if (!document.querySelector(SELECTOR)) return;
  observer.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => { window.drawnAt = performance.now(); }));
}).observe(document, {childList: true, subtree: true})"""
"""Notes the first frame with an element."""
SCROLL = """async () => {
  const place = document.querySelector(".gantt .scroll");
  const took = [];
  for (let round = 0; round < 120; round += 1) {
    const {port1, port2} = new MessageChannel();
    const done = new Promise((resolve) => { port1.onmessage = resolve; });
    let begun = null;
    place.addEventListener("scroll", () => {
      begun = performance.now();
      requestAnimationFrame(() => port2.postMessage(null));
    }, {capture: true, once: true});
    place.scrollTop = (round * 97 + 1) % (place.scrollHeight - place.clientHeight || 1);
    await done;
    took.push(performance.now() - begun);
    await new Promise(requestAnimationFrame);
  }
  return took;
}"""
"""From the event of the scrolling until the frame with it is painted: what a frame takes."""


def quantile(values: list[float], share: float) -> float:
    """The value below which that share of the values is."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


@contextmanager
def simulation(hosts: int) -> Iterator[tuple[Cli, str, int]]:
    """A simulation of so many hosts: its command line, its address, its process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fleet.yaml"
        file.write_text(fleet_of(hosts), encoding="utf-8")
        cli = Cli(clean(Path(folder)) | {"OS_CLOUD": "bench"})
        begun = cli("sim", "start", "--fleet", str(file), "--now", NOW, "--name", "bench")
        assert begun.status == 0, begun
        found = registry.known(registry.state_directory({"XDG_STATE_HOME": folder}), "bench")
        assert found is not None
        try:
            yield cli, found.endpoint, found.pid
        finally:
            end(found.pid)


def write(endpoint: str, number: int) -> None:
    """Place and hold an application of ten members."""
    members = [{"name": "n", "count": 10, "flavor": "m1.xlarge"}]
    body = {"ensemble": {"name": f"e{number}", "members": members, "decide": {"hold": "PT1H"}}}
    headers = {"x-auth-token": "admin", "content-type": "application/json"}
    asked = urllib.request.Request(  # noqa: S310 - loopback
        f"{endpoint}/v1/ensembles", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - loopback
        answer.read()


def lease(endpoint: str, number: int) -> None:
    """A lease of one server for twelve hours, somewhere in 90 days."""
    start = time.gmtime(time.mktime((2026, 11, 22, number * 7 % (88 * 24), 0, 0, 0, 0, 0)))
    begin = time.strftime("%Y-%m-%dT%H:00:00Z", start)
    amount = {"count": 1, "flavor": "m1.small"}
    body = {"lease": {"name": f"l{number}", "amount": amount, "start": begin, "duration": "PT12H"}}
    headers = {"x-auth-token": "admin", "content-type": "application/json"}
    asked = urllib.request.Request(  # noqa: S310 - loopback
        f"{endpoint}/v1/leases", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - loopback
        answer.read()


def processor_seconds(parent: int) -> float:
    """Of a process and its children that run."""
    ticks = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if parent in {int(folder.name), int(fields[1])}:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


def first_view(
    browser: Browser, endpoint: str, path: str, selector: str, rounds: int
) -> list[float]:
    """Milliseconds until the selector's element has been drawn, each in a new context.

    The page itself notes when: what drives the browser takes a third of a second to see it.
    """
    took = []
    for _ in range(rounds):
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.add_init_script(DRAWN.replace("SELECTOR", json.dumps(selector)))
        page.goto(f"{endpoint}/ui{path}", wait_until="commit")
        page.wait_for_function("() => window.drawnAt")
        took.append(page.evaluate("() => window.drawnAt"))
        context.close()
    return took


def said(what: str, values: list[float], unit: str = "ms") -> None:
    """Print a measurement."""
    p50, p95 = statistics.median(values), quantile(values, 0.95)
    print(f"{what:<58} p50 {p50:8.1f} {unit}   p95 {p95:8.1f} {unit}")


def files() -> None:
    """Bytes of what a browser loads at most."""
    folder = Path(__file__).parents[1] / "src/moorage/web"
    names = [one for one in folder.rglob("*") if one.suffix in {".js", ".css"}]
    sizes = [len(gzip.compress(one.read_bytes())) for one in names]
    print(f"{'scripts and styles, gzipped':<58} {sum(sizes) / 1000:.1f} kB in {len(names)} files")


def fleet(browser: Browser, hosts: int) -> None:
    """Measure the map of so many hosts."""
    with simulation(hosts) as (_, endpoint, pid):
        for number in range(10):
            write(endpoint, number)
        name = f"fleet of {hosts:,}"
        said(f"{name}: first view", first_view(browser, endpoint, "/fleet", ".map canvas", 7))
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(f"{endpoint}/ui/fleet")
        page.wait_for_selector(".map canvas")
        page.wait_for_timeout(500)
        took = page.evaluate(FRAMES)
        said(f"{name}: frame of zooming", took["zoom"])
        said(f"{name}: frame of panning", took["pan"])
        session = context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        used = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
        print(f"{name + ': memory of the scripts':<58} {used:.0f} MB")
        updates, sizes = [], []
        for number in range(10, 20):
            with page.expect_response(lambda one: "/fleet/map" in one.url) as waited:
                write(endpoint, number)
                begun = time.perf_counter()
            updates.append(1000 * (time.perf_counter() - begun))
            sizes.append(float(waited.value.headers.get("content-length") or 0))
        said(f"{name}: update after a commit", updates)
        said(f"{name}: bytes of the map's update", sizes, "B")
        context.close()
        viewers(endpoint, pid, name)


def viewers(endpoint: str, pid: int, name: str, seconds: int = 20) -> None:
    """Processor time a second, with viewers as the page is one and without, in turns."""
    found: dict[int, list[float]] = {0: [], VIEWERS: []}
    number = 1000
    for _ in range(3):
        for many, shares in found.items():
            stop = threading.Event()
            threads = [threading.Thread(target=view, args=(endpoint, stop)) for _ in range(many)]
            for one in threads:
                one.start()
            time.sleep(3)
            before = processor_seconds(pid)
            for _ in range(seconds):
                write(endpoint, number)
                number += 1
                time.sleep(1)
            shares.append((processor_seconds(pid) - before) / seconds)
            stop.set()
            for one in threads:
                one.join()
    alone, watched = statistics.median(found[0]), statistics.median(found[VIEWERS])
    share = 100 * (watched - alone)
    print(f"{name}: {VIEWERS} viewers at a write a second: {share:.1f} % of a processor")


def view(endpoint: str, stop: threading.Event) -> None:
    """Ask as the page does: wait for events, then read what of the map has changed."""
    # One connection, as a browser keeps it.
    connection = HTTPConnection(endpoint.removeprefix("http://"), timeout=60)

    def read(path: str) -> Any:  # noqa: ANN401 - JSON
        headers = {"x-auth-token": "admin", "accept-encoding": "gzip"}
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        data = answer.read()
        zipped = answer.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(data) if zipped else data)

    cursor, tag = "now", read("/v1/fleet/map")["map"]["tag"]
    while not stop.is_set():
        begun = time.monotonic()
        found = read(f"/v1/events?after={cursor}&wait=5s&all_projects=true")
        cursor = found["cursor"]
        if found["events"]:
            tag = read(f"/v1/fleet/map?since={tag}")["map"]["tag"]
        pause = max(0.0, begun + APART - time.monotonic())
        time.sleep(pause * random.uniform(1, 1.25))
    connection.close()


def calendar(browser: Browser, leases: int) -> None:
    """Measure the calendar of so many leases."""
    with simulation(1000) as (_, endpoint, _):
        for number in range(leases):
            lease(endpoint, number)
        name = f"calendar of {leases:,} leases, 90 days"
        path = "/calendar?days=90&from=2026-11-21T00:00:00Z"
        said(f"{name}: first view", first_view(browser, endpoint, path, ".gantt canvas", 5))
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(f"{endpoint}/ui{path}")
        page.wait_for_selector(".gantt canvas")
        page.wait_for_timeout(500)
        said(f"{name}: frame of scrolling", page.evaluate(SCROLL))
        context.close()


def main() -> None:
    """Measure all, or a part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", default="10000,100000", help="numbers with commas")
    parser.add_argument("--leases", type=int, default=5000)
    args = parser.parse_args()
    files()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for hosts in map(int, args.hosts.split(",")):
            fleet(browser, hosts)
        if args.leases:
            calendar(browser, args.leases)
        browser.close()


if __name__ == "__main__":
    main()
