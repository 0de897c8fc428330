// Drawing weights as lines, cells or bars; independent of the state of the page.

const N_COLOURS = 8;
const MIN_LINE_WEIGHT = 0.04; // the weakest line of a selected query
const MIN_CELL_WEIGHT = 0.01; // the weakest cell or bar of a selected query
const MIN_OVERVIEW_WEIGHT = 0.05; // the weakest line while all queries are shown
const N_STRONGEST = 3; // lines of a query while all queries are shown

/** The colours of the current theme, read from the style sheet. */
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    heads: Array.from({ length: N_COLOURS }, (_, i) => colour(`--head-${i}`)),
    mean: colour("--mean"),
    panel: colour("--panel"),
    future: colour("--future"),
  };
}

const colourOfHead = (theme, head) => theme.heads[head % N_COLOURS];
const dashOfHead = (head) => (Math.floor(head / N_COLOURS) % 2 ? [6, 3] : []);

/** Opacity of a weight, 0 to 1; the exponent below 1 keeps weak weights visible. */
const shade = (weight) => Math.pow(weight, 0.7);

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Fill a canvas with one pixel per weight. `weightAt(row, column)` is null where attention is masked. */
function drawCells(canvas, { nRows, nColumns, weightAt, colour, theme }) {
  canvas.width = nColumns;
  canvas.height = nRows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(nColumns, nRows);
  const [full, empty, future] = [rgb(colour), rgb(theme.panel), rgb(theme.future)];
  for (let row = 0, at = 0; row < nRows; row++) {
    for (let column = 0; column < nColumns; column++, at += 4) {
      const weight = weightAt(row, column);
      const strength = weight === null ? 0 : shade(weight);
      const background = weight === null ? future : empty;
      for (let c = 0; c < 3; c++) image.data[at + c] = background[c] + (full[c] - background[c]) * strength;
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

/** Draw a picture, a byte for each pixel, and over it the places with weights, relative to the greatest; null for none. */
function drawPicture(canvas, { shape: [nRows, nColumns], steps, boxes, weights, colour, theme }) {
  const at = (row, column) => steps[row * nColumns + column] / 255;
  drawCells(canvas, { nRows, nColumns, weightAt: at, colour: theme.mean, theme });
  if (weights === null) return;
  const context = canvas.getContext("2d");
  const greatest = Math.max(...weights);
  context.fillStyle = colour;
  boxes.forEach(([left, top, right, bottom], place) => {
    context.globalAlpha = 0.75 * ((weights[place] / greatest) ** 2 || 0); // places of equal weights stay readable
    context.fillRect(left, top, right - left, bottom - top);
  });
}

/** Size a canvas to its box in device pixels, clear it, and return a context that draws in CSS pixels. */
function freshContext(canvas) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return context;
}

/** One line from a query at (x1, y1) to a key at (x2, y2), as a gentle curve. */
function drawLine(context, x1, y1, x2, y2) {
  const bend = (x2 - x1) * 0.45;
  context.beginPath();
  context.moveTo(x1, y1);
  context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  context.stroke();
}

/** The strongest weights as [key, weight]: at most `N_STRONGEST`, none below `MIN_OVERVIEW_WEIGHT`. */
function strongest(weights) {
  const visible = [...weights.entries()].filter(([, weight]) => weight >= MIN_OVERVIEW_WEIGHT);
  return visible.sort(([, one], [, other]) => other - one).slice(0, N_STRONGEST);
}

/** The strongest lines of all queries, in one colour: of a single head, or of the mean over heads. */
function drawAllQueries(context, { nQueries, nKeys, weightAt, colour, layout }) {
  context.strokeStyle = colour;
  for (let query = 0; query < nQueries; query++) {
    const weights = Array.from({ length: nKeys }, (_, key) => weightAt(query, key));
    for (const [key, weight] of strongest(weights)) {
      context.globalAlpha = 0.15 + 0.85 * shade(weight);
      context.lineWidth = 1 + 1.5 * weight;
      drawLine(context, layout.left, layout.y(query), layout.right, layout.y(key));
    }
  }
}

/** The lines of one query, each ending in a strip before its key: one cell per head, or a bar for a single head. */
function drawRow(context, query, { heads, nKeys, weightAt, layout, theme }) {
  const single = heads.length === 1;
  const cell = layout.strip / heads.length;
  heads.forEach((head, slot) => {
    const fan = layout.fan(slot);
    context.strokeStyle = context.fillStyle = colourOfHead(theme, head);
    context.setLineDash(dashOfHead(head));
    for (let key = 0; key < nKeys; key++) {
      const weight = weightAt(head, query, key);
      if (weight < MIN_CELL_WEIGHT) continue;
      const [y, height] = [layout.y(key), layout.row - 4];
      context.globalAlpha = single ? 1 : shade(weight); // a bar shows the weight by its length, a cell by its opacity
      const width = single ? layout.strip * weight : cell;
      context.fillRect(layout.right + (single ? 0 : slot * cell), y - height / 2, width, height);
      context.globalAlpha = shade(weight);
      if (weight < MIN_LINE_WEIGHT) continue;
      context.lineWidth = 1.25 + 1.75 * weight;
      drawLine(context, layout.left, layout.y(query) + fan, layout.right, y + fan);
    }
  });
}
