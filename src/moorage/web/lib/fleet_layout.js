// Where each host stands on the map, in cells: arithmetic only, so that the page and its tests need no drawing.
//
// Each block (a rack, say) is a rectangle of cells; the blocks of a parent flow in shelves below its name; parents
// stand below each other. What a point hits is found by three binary searches, however many hosts there are.

/**
 * Gaps, heads of parents and names of blocks in cells, by the number of hosts: they must leave room for text, and cells
 * are larger the fewer there are. A cell has `unit` texels each way.
 */
const SPACES = [
  {most: 150, unit: 8, gap: 0.375, head: 0.5, name: 0.375},
  {most: 4000, unit: 4, gap: 0.5, head: 1.5, name: 1},
  {most: Infinity, unit: 1, gap: 1, head: 2, name: 1},
];

/**
 * The layout of a map's blocks. `blocks`: `{name, parent, first, count}`, columns of equal length.
 * Returns `{width, height, unit, bands, blocks}` in cells, of `unit` texels each way; each block has `x, y, columns,
 * rows, first, count, index`.
 */
export function layout(blocks, parents, aspect = 1.6) {
  const total = blocks.count.reduce((sum, count) => sum + count, 0);
  const {unit, gap: GAP, head: HEAD, name: NAME} = SPACES.find((one) => total <= one.most);
  const groups = new Map();
  blocks.first.forEach((first, index) => {
    const parent = blocks.parent[index];
    if (!groups.has(parent)) groups.set(parent, []);
    groups.get(parent).push(index);
  });
  const area = blocks.count.reduce((sum, count) => sum + (size(count).columns + GAP) * (size(count).rows + GAP + NAME), 0);
  const width = Math.max(Math.ceil(Math.sqrt(area * aspect)), ...blocks.count.map((count) => size(count).columns + GAP), 6);
  const placed = [];
  const bands = [];
  let y = 0;
  for (const [parent, members] of groups) {
    const band = {name: parents.name[parent] ?? "", y, shelves: []};
    y += HEAD;
    let x = 0;
    let shelf = {y, height: 0, blocks: []};
    for (const index of members) {
      const {columns, rows} = size(blocks.count[index]);
      if (x && x + columns > width) {
        band.shelves.push(shelf);
        y += shelf.height;
        shelf = {y, height: 0, blocks: []};
        x = 0;
      }
      const block = {index, name: blocks.name[index], x, y: y + NAME, columns, rows, first: blocks.first[index], count: blocks.count[index]};
      shelf.blocks.push(block);
      shelf.height = Math.max(shelf.height, rows + NAME + GAP);
      placed.push(block);
      x += columns + GAP;
    }
    band.shelves.push(shelf);
    y += shelf.height;
    band.end = y;
    bands.push(band);
    y += GAP;
  }
  return {width, height: Math.max(y, 1), unit, head: HEAD, name: NAME, bands, blocks: placed};
}

/** A block is about half as high as it is wide, as racks of a row are drawn. */
function size(count) {
  const columns = Math.max(1, Math.ceil(Math.sqrt(count * 1.5)));
  return {columns, rows: Math.max(1, Math.ceil(count / columns))};
}

/** The last of `sorted` whose `key` is not beyond the value, or null. */
function last(sorted, key, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle][key] <= value) low = middle + 1;
    else high = middle;
  }
  return low ? sorted[low - 1] : null;
}

/** The block and the host at a point in cells: `{block, host}`; the host is null in a block's head or gaps. */
export function hit(plan, x, y) {
  const band = last(plan.bands, "y", y);
  const shelf = band && last(band.shelves, "y", y);
  const block = shelf && last(shelf.blocks, "x", x);
  if (!block || x >= block.x + block.columns || y >= block.y + block.rows || y < block.y - plan.name) return null;
  const row = Math.floor(y - block.y);
  const index = row * block.columns + Math.floor(x - block.x);
  return {block, host: row >= 0 && index < block.count ? block.first + index : null};
}

/** The cell of a host: `{x, y, block}`. */
export function cellOf(plan, host) {
  const block = last(plan.blocks, "first", host);
  if (!block || host >= block.first + block.count) return null;
  const within = host - block.first;
  return {x: block.x + (within % block.columns), y: block.y + Math.floor(within / block.columns), block};
}

/** The host that an arrow key leads to. */
export function step(plan, host, key, total) {
  const cell = cellOf(plan, host ?? 0);
  if (host === null || !cell) return 0;
  const moved = {ArrowLeft: host - 1, ArrowRight: host + 1, ArrowUp: host - cell.block.columns, ArrowDown: host + cell.block.columns, Home: 0, End: total - 1}[key];
  return Math.max(0, Math.min(total - 1, moved));
}
