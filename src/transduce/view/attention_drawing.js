// Drawing: what a weight looks like, as a line, a strip or a cell. Nothing here knows the page's state.

const N_COLOURS = 8;
const LEAST_DRAWN = 0.04; // weaker lines are not drawn: they would only cost time
const LEAST_SEEN = 0.01; // and a cell of the strip is blank
const LEAST_DRAWN_IN_CROWD = 0.12; // the same where all rows are shown at once

/** The colours of the theme in force, read from the style sheet. */
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  return {
    heads: Array.from({ length: N_COLOURS }, (_, i) => colour(`--head-${i}`)),
    panel: colour("--panel"),
    future: colour("--future"),
  };
}

const colourOfHead = (theme, head) => theme.heads[head % N_COLOURS];
const dashOfHead = (head) => (Math.floor(head / N_COLOURS) % 2 ? [6, 3] : []);

/** How dark a weight is drawn, 0 to 1: weak weights are lifted a little, so that they can be seen at all. */
const shade = (weight) => Math.pow(weight, 0.7);

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** Fill a canvas with one pixel per weight. `weightAt(row, column)` is null where nothing may be attended to. */
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
      const ground = weight === null ? future : empty;
      for (let c = 0; c < 3; c++) image.data[at + c] = ground[c] + (full[c] - ground[c]) * strength;
      image.data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
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

/** All lines of all queries: a crowd, in which only the strong ones are drawn. Heads lie side by side, like strands. */
function drawCrowd(context, { heads, nQueries, nKeys, weightAt, place, theme }) {
  context.lineWidth = Math.min(1.5, (place.row * 0.5) / heads.length);
  heads.forEach((head, slot) => {
    const fan = place.fan(slot);
    context.strokeStyle = colourOfHead(theme, head);
    for (let query = 0; query < nQueries; query++) {
      for (let key = 0; key < nKeys; key++) {
        const weight = weightAt(head, query, key);
        if (weight < LEAST_DRAWN_IN_CROWD) continue;
        context.globalAlpha = shade(weight) * 0.75;
        drawLine(context, place.left, place.y(query) + fan, place.right, place.y(key) + fan);
      }
    }
  });
}

/** The lines of one query, each ending in a strip before its key: a cell for each head, or a bar for a single one. */
function drawRow(context, query, { heads, nKeys, weightAt, place, theme }) {
  const single = heads.length === 1;
  const cell = place.strip / heads.length;
  heads.forEach((head, slot) => {
    const fan = place.fan(slot);
    context.strokeStyle = context.fillStyle = colourOfHead(theme, head);
    context.setLineDash(dashOfHead(head));
    for (let key = 0; key < nKeys; key++) {
      const weight = weightAt(head, query, key);
      if (weight < LEAST_SEEN) continue;
      const [y, height] = [place.y(key), place.row - 4];
      context.globalAlpha = single ? 1 : shade(weight); // a bar speaks by its length, a cell by its strength
      const width = single ? place.strip * weight : cell;
      context.fillRect(place.right + (single ? 0 : slot * cell), y - height / 2, width, height);
      context.globalAlpha = shade(weight);
      if (weight < LEAST_DRAWN) continue;
      context.lineWidth = 1.25 + 1.75 * weight;
      drawLine(context, place.left, place.y(query) + fan, place.right, y + fan);
    }
  });
}
