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

/** Widths that are tried, as shares of what the area alone would ask for. */
const TRIED = [0.7, 0.78, 0.86, 0.94, 1, 1.06, 1.14, 1.22, 1.32, 1.45];

/**
 * The layout of a map's blocks that is largest in a room `aspect` times as wide as high. `blocks`: `{name, parent,
 * first, count}`, columns of equal length. Returns `{width, height, unit, bands, blocks}` in cells, of `unit` texels
 * each way; each block has `x, y, columns, rows, first, count, index`. `room` is the height that a block's name has.
 */
export function layout(blocks, parents, aspect = 1.6) {
  const total = blocks.count.reduce((sum, count) => sum + count, 0);
  const spaces = SPACES.find((one) => total <= one.most);
  const groups = new Map();
  blocks.first.forEach((first, index) => {
    const parent = blocks.parent[index];
    if (!groups.has(parent)) groups.set(parent, []);
    groups.get(parent).push(index);
  });
  const sizes = blocks.count.map(size);
  const area = sizes.reduce((sum, {columns, rows}) => sum + (columns + spaces.gap) * (rows + spaces.gap + spaces.name), 0);
  const least = Math.max(...sizes.map(({columns}) => columns), 6);
  const plans = TRIED.map((share) => flowed(blocks, parents, groups, sizes, Math.max(Math.ceil(Math.sqrt(area * aspect) * share), least), spaces));
  const scale = (plan) => Math.min(aspect / plan.width, 1 / plan.height);
  return plans.reduce((best, one) => (scale(one) > scale(best) ? one : best));
}

/** The blocks in shelves of at most this width. */
function flowed(blocks, parents, groups, sizes, width, {unit, gap: GAP, head: HEAD, name: NAME}) {
  const placed = [];
  const bands = [];
  let y = 0;
  let used = 6;
  for (const [parent, members] of groups) {
    const band = {name: parents.name[parent] ?? "", y, shelves: []};
    y += HEAD;
    let x = 0;
    let shelf = {y, height: 0, blocks: []};
    for (const index of members) {
      const {columns, rows} = sizes[index];
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
      used = Math.max(used, x + columns);
      x += columns + GAP;
    }
    band.shelves.push(shelf);
    y += shelf.height;
    band.end = y;
    bands.push(band);
    y += GAP;
  }
  return {width: used, height: Math.max(y, 1), unit, head: HEAD, name: NAME, room: NAME + GAP, bands, blocks: placed};
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

/** The hosts whose cells' middles are between two corners, in cells. */
export function between(plan, from, to) {
  const [left, right] = [Math.min(from.x, to.x), Math.max(from.x, to.x)];
  const [top, bottom] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
  const found = [];
  for (const block of plan.blocks) {
    if (block.x > right || block.x + block.columns < left || block.y > bottom || block.y + block.rows < top) continue;
    for (let within = 0; within < block.count; within += 1) {
      const x = block.x + (within % block.columns) + 0.5;
      const y = block.y + Math.floor(within / block.columns) + 0.5;
      if (x >= left && x <= right && y >= top && y <= bottom) found.push(block.first + within);
    }
  }
  return found;
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
