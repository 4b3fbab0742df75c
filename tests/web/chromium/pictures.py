"""Pictures of the page for the documentation: `python -m tests.web.chromium.pictures`.

Two simulations with fixed clocks are opened screen by screen, in both themes. The browser itself
makes WebP of what it has drawn, and compares two pictures for the test.
"""

import base64
import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.cli.conftest import Cli, clean
from tests.web.chromium.conftest import CHROMIUM, FLAGS, SHOP, Sim

from moorage.cli.sim_process import end
from moorage.client import registry

FOLDER: Final = Path(__file__).parents[3] / "docs/assets/pictures"
NOW: Final = "2026-11-21T09:00:00Z"
SIZE: Final = {"width": 1200, "height": 750}
SCHEMES: Final = ("light", "dark")
_SETTLED: Final = 700
"""Milliseconds after which a screen on loopback has drawn all it has read."""

TO_WEBP: Final = """async (png) => {
  const bytes = Uint8Array.from(atob(png), (one) => one.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({type: "image/webp", quality: 0.8});
  const made = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (const one of made) text += String.fromCharCode(one);
  return btoa(text);
}"""
SHARE_OF_DIFFERENT: Final = """async ([first, second]) => {
  const pixels = async (text) => {
    const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], {type: "image/webp"}));
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, image.width, image.height);
  };
  const [one, other] = [await pixels(first), await pixels(second)];
  if (one.width !== other.width || one.height !== other.height) return 1;
  let different = 0;
  for (let at = 0; at < one.data.length; at += 4) {
    const off = (part) => Math.abs(one.data[at + part] - other.data[at + part]);
    const apart = Math.max(off(0), off(1), off(2));
    different += apart > 48 ? 1 : 0;
  }
  return different / (one.width * one.height);
}"""


def described(sim: Sim, folder: Path, name: str, text: str) -> str:
    """Place an application, or have it refused; its id, or that of the refusal."""
    file = folder / f"{name}.yaml"
    file.write_text(text, encoding="utf-8")
    made = sim.cli("ensemble", "create", "-f", str(file), "--hold", "4h", "--format", "json")
    if made.status == 0:
        return str(made.body["ensemble"]["id"])
    return str(made.body["errors"][0]["explanation"]["id"])


def shots(sim: Sim, folder: Path) -> dict[str, str]:
    """Name of a picture -> path of the page, once the simulation has what is shown there."""
    shop = described(sim, folder, "shop", SHOP.format(name="shop"))
    refusal = described(sim, folder, "second", SHOP.format(name="second-shop"))
    period = ("--flavor", "m1.medium", "--count", "3", "--duration", "20h")
    for day in range(1, 5):
        name = f"nightly-{day}"
        sim.cli("lease", "create", *period, "--name", name, "--start", f"2026-11-{21 + day}T20:00Z")
    words = ("--flavor", "m1.2xlarge", "--count", "6", "--name", "training")
    sim.cli("lease", "create", *words, "--start", "2026-11-23T09:00Z", "--duration", "2d", "--wait")
    sim.cli("capacity", "window", "create", "--host", "h4", "--down", "2026-11-25T06:00Z/24h")
    return {
        "application": f"/applications/{shop}",
        "why": f"/why/{refusal}",
        "calendar": "/calendar?from=2026-11-21T00:00:00Z",
    }


FLEET: Final = {"fleet": "/fleet?class=MEMORY_MB"}
"""Of a fleet of a thousand hosts."""


@contextlib.contextmanager
def simulations(folder: Path) -> Iterator[tuple[Sim, Sim]]:
    """A simulation of three racks, and one of a thousand hosts; stopped in the end."""
    made = []
    try:
        for name, fleet in (("racks", "three-racks.yaml"), ("thousand", "thousand-hosts.yaml")):
            cli = Cli(clean(folder) | {"OS_CLOUD": name})
            begun = cli("sim", "start", "--fleet", fleet, "--now", NOW, "--name", name)
            assert begun.status == 0, begun
            found = registry.known(registry.state_directory({"XDG_STATE_HOME": str(folder)}), name)
            assert found is not None
            made.append(Sim(cli, found.endpoint))
        yield made[0], made[1]
    finally:
        for one in registry.running(registry.state_directory({"XDG_STATE_HOME": str(folder)})):
            end(one.pid)


def rendered(browser: Any, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Each picture's name, such as `fleet-dark`, and its WebP."""
    with simulations(folder) as (racks, thousand):
        wanted = [(racks, shots(racks, folder)), (thousand, FLEET)]
        for scheme in SCHEMES:
            context = browser.new_context(
                viewport=SIZE, color_scheme=scheme, locale="en-GB", timezone_id="UTC"
            )
            page = context.new_page()
            blank = context.new_page()
            for sim, paths in wanted:
                for name, path in paths.items():
                    page.goto(sim.ui(path))
                    page.get_by_role("heading", level=1).wait_for()
                    page.wait_for_timeout(_SETTLED)
                    png = base64.b64encode(page.screenshot()).decode()
                    yield f"{name}-{scheme}", base64.b64decode(blank.evaluate(TO_WEBP, png))
            context.close()


def main() -> int:
    """Draw all pictures anew."""
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for name, webp in rendered(browser, Path(folder)):
            (FOLDER / f"{name}.webp").write_bytes(webp)
            print(f"{name}.webp  {len(webp)} bytes")  # noqa: T201 - a program
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
