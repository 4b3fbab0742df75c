async () => {
  const style = document.querySelector("link[rel=stylesheet][href$=\"/style.css\"]").href;
  const {layout, hit, cellOf} = await import(new URL("lib/fleet_layout.js", style));
  let seed = 7;
  const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
  const wrong = [];
  for (let round = 0; round < 60; round += 1) {
    const count = Array.from({length: 1 + random(round % 3 ? 30 : 400)}, () => 1 + random(60));
    const first = [];
    count.reduce((sum, one) => (first.push(sum), sum + one), 0);
    const parent = count.map((_, index) => Math.floor(index / 7));
    const names = count.map((_, index) => `r${index}`);
    const plan = layout({name: names, parent, first, count}, {name: parent.map((one) => `z${one}`)});
    const total = first.at(-1) + count.at(-1);
    for (let host = 0; host < total; host += 1 + random(9)) {
      const {x, y} = cellOf(plan, host);
      if (hit(plan, x + 0.5, y + 0.5)?.host !== host) wrong.push([round, host]);
    }
    for (const block of plan.blocks) {
      if (block.x + block.columns > plan.width + 1e-9 || block.y + block.rows > plan.height) wrong.push([round, block.name]);
    }
  }
  return wrong;
}
