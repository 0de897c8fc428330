// The page: choices in a form, the chosen view in the address, and everything shown a function of the two.

const KINDS = {
  encoder: {
    name: "Encoder self-attention", queries: "src", keys: "src",
    queryTitle: "each source piece", keyTitle: "looks at the source", verb: "Reading",
    explains: "Each piece of the source looks at the whole source sentence, itself included, and gathers what it "
      + "needs for its meaning here.",
  },
  decoder: {
    name: "Decoder self-attention", queries: "written", keys: "read",
    queryTitle: "while writing", keyTitle: "looks back at", verb: "Writing",
    explains: "While it writes a piece, the decoder looks back at what it has written so far, from the start symbol "
      + "on; later pieces are out of sight.",
  },
  cross: {
    name: "Encoder-decoder attention", queries: "written", keys: "src",
    queryTitle: "while writing", keyTitle: "looks at the source", verb: "Writing",
    explains: "While it writes a piece, the decoder looks at the encoded source sentence: a soft alignment between "
      + "the two languages.",
  },
};

const element = (id) => document.getElementById(id);
const form = element("choices");
let examples; // the sentences, weights unpacked
let state; // { sentence, kind, layer, head (null: all), word (null: none) }, counted from 0
let pointed = null; // the word under the pointer or the focus, stronger than state.word
let theme; // the colours in force
let places; // where words stand: measured when they change, since measuring at each hover would lay out the page twice

window.addEventListener("error", (event) => showError(event.message));
window.addEventListener("unhandledrejection", (event) => showError(event.reason));

function showError(error) {
  element("error").textContent = `This page could not draw its pictures: ${error}`;
  element("error").hidden = false;
  document.documentElement.dataset.error = String(error);
}

/** A new element with text, class and attributes; text is always text, never markup. */
function create(tag, { text, children = [], ...attributes }) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Text that is there already costs no layout. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const readable = (piece) => (piece.trim() === "" ? "\u2423" : piece);
const pieceSpan = (piece) => create("span", { text: readable(piece), class: "piece", dir: "auto", title: piece });
const numbered = (weight) => weight.toFixed(2);

function swatch(head) {
  const span = create("span", { class: dashOfHead(head).length ? "swatch dashed" : "swatch" });
  span.style.setProperty("--head", `var(--head-${head % N_COLOURS})`);
  return span;
}

async function unpacked({ shape, weights }) {
  const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return { shape, steps: new Uint8Array(await new Response(stream).arrayBuffer()) };
}

async function unpackedExample(example) {
  const entries = Object.entries(example.maps).map(async ([kind, map]) => [kind, await unpacked(map)]);
  return { ...example, maps: Object.fromEntries(await Promise.all(entries)) };
}

/** What the state selects: pieces, sizes, the heads that are shown, and the weights of the layer. */
function currentView() {
  const example = examples[state.sentence];
  const kind = KINDS[state.kind];
  const { shape: [nLayers, nHeads, nQueries, nKeys], steps } = example.maps[state.kind];
  const weightAt = (head, query, key) => steps[((state.layer * nHeads + head) * nQueries + query) * nKeys + key] / 255;
  const heads = state.head === null ? [...Array(nHeads).keys()] : [state.head];
  const isFuture = (query, key) => state.kind === "decoder" && key > query;
  return { example, kind, nLayers, nHeads, nQueries, nKeys, weightAt, heads, isFuture,
    queries: example[kind.queries], keys: example[kind.keys] };
}

// The address: #sentence=1&kind=cross&layer=2&head=all&word=4, counted from 1. What does not fit is put right.

function stateFrom(wanted) {
  const within = (name, n, otherwise) => {
    const number = Number(wanted.get(name));
    return Number.isInteger(number) && number >= 1 && number <= n ? number - 1 : otherwise;
  };
  const sentence = within("sentence", examples.length, 0);
  const kind = Object.hasOwn(KINDS, wanted.get("kind")) ? wanted.get("kind") : "cross";
  const [nLayers, nHeads, nQueries] = examples[sentence].maps[kind].shape;
  return {
    sentence, kind,
    layer: within("layer", nLayers, nLayers - 1),
    head: within("head", nHeads, null),
    word: within("word", nQueries, null),
  };
}

/** The inverse of `stateFrom`: what the address and the form hold. */
function choicesOf({ sentence, kind, layer, head, word }) {
  const choices = { sentence: sentence + 1, kind, layer: layer + 1, head: head === null ? "all" : head + 1 };
  return new URLSearchParams(word === null ? choices : { ...choices, word: word + 1 });
}

const rememberInAddress = () => history.replaceState(null, "", `#${choicesOf(state)}`);

function setState(wanted) {
  state = stateFrom(wanted);
  rememberInAddress();
  render();
}

// Choosers

function radios(name, options) {
  const box = element(`${name}-options`);
  const signature = options.map(({ value }) => value).join();
  if (box.dataset.values === signature) return; // rebuilding would take the focus away
  box.dataset.values = signature;
  box.replaceChildren(...options.map(({ value, text, label, children = [] }) =>
    create("label", { children: [
      create("input", { type: "radio", name, value, "aria-label": label }),
      create("span", { children: [...children, text] }),
    ] })));
}

function renderChoosers(view) {
  const option = (name, i) => ({ value: i + 1, text: String(i + 1), label: `${name} ${i + 1}` });
  const count = (n, name) => Array.from({ length: n }, (_, i) => option(name, i));
  radios("kind", Object.entries(KINDS).map(([value, { name }]) => ({ value, text: name, label: name })));
  radios("layer", count(view.nLayers, "layer"));
  radios("head", [
    { value: "all", text: "all", label: "all heads" },
    ...count(view.nHeads, "head").map((one, head) => ({ ...one, children: [swatch(head)] })),
  ]);
  const chosen = choicesOf(state);
  for (const name of ["sentence", "kind", "layer", "head"]) form.elements[name].value = chosen.get(name);
}

// The two columns of words

function renderColumns(view) {
  const { queries, keys, kind } = view;
  element("query-title").textContent = kind.queryTitle;
  element("key-title").textContent = kind.keyTitle;
  element("number-title").textContent = state.head === null ? "mean" : "weight";
  element("queries").replaceChildren(...queries.map((piece, word) => {
    const read = kind.queries === "written" ? `, after reading ${view.example.read[word]}` : "";
    return create("li", { children: [create("button", {
      type: "button", text: readable(piece), dir: "auto", title: piece, "data-word": word,
      "aria-label": `${kind.verb} ${readable(piece)}${read}`,
    })] });
  }));
  element("keys").replaceChildren(...keys.map((piece) =>
    create("li", { children: [pieceSpan(piece), create("span", { class: "number" })] })));
  const least = parseInt(getComputedStyle(element("columns")).getPropertyValue("--least-row")) || 20;
  const row = Math.max(least, Math.min(30, Math.floor(760 / Math.max(queries.length, keys.length))));
  element("columns").style.setProperty("--row", `${row}px`);
  element("columns").style.setProperty("--type", `${Math.min(16, row - 6)}px`);
}

/** Where the words of both columns stand, in pixels of the canvas between them. */
function measuredPlaces(view) {
  const box = element("lines").getBoundingClientRect();
  const queries = element("queries").getBoundingClientRect();
  const keys = element("keys").getBoundingClientRect();
  const piece = element("keys").querySelector(".piece").getBoundingClientRect();
  const row = queries.height / view.nQueries;
  return {
    row, left: queries.right - box.left, keys: keys.left - box.left, pieces: piece.left - box.left,
    y: (index) => queries.top - box.top + (index + 0.5) * row,
    fan: (slot) => ((slot + 0.5) / view.heads.length - 0.5) * row * 0.7,
  };
}

function drawLines(view, word) {
  const right = word === null ? places.pieces : places.keys;
  const place = { ...places, right, strip: places.pieces - places.keys };
  const context = freshContext(element("lines"));
  if (word === null) drawCrowd(context, { ...view, place, theme });
  else drawRow(context, word, { ...view, place, theme });
}

// Maps

function drawMap(canvas, view, head) {
  const weightAt = (query, key) => (view.isFuture(query, key) ? null : view.weightAt(head, query, key));
  drawCells(canvas, { nRows: view.nQueries, nColumns: view.nKeys, weightAt, colour: colourOfHead(theme, head), theme });
}

function renderMaps(view) {
  const isGallery = state.head === null;
  element("gallery").hidden = !isGallery;
  element("heat").hidden = isGallery;
  element("future-key").hidden = state.kind !== "decoder";
  const colour = colourOfHead(theme, state.head ?? 0);
  drawCells(element("scale"), { nRows: 1, nColumns: 256, weightAt: (_, step) => step / 255, colour, theme });
  if (isGallery) {
    element("gallery").replaceChildren(...view.heads.map((head) => galleryItem(view, head)));
    return;
  }
  drawMap(element("heat-canvas"), view, state.head);
  const sizes = `${view.nQueries} by ${view.nKeys} weights`;
  element("heat-canvas").setAttribute("aria-label", `${view.kind.name}, ${titleOfMap(view)}: ${sizes}`);
  const label = (piece) => create("span", { text: readable(piece), dir: "auto" });
  element("heat-rows").replaceChildren(...view.queries.map(label));
  element("heat-columns").replaceChildren(...view.keys.map(label));
}

/** Choose the size of a cell so that the map fills its panel; below the least readable size the panel scrolls. */
function fitMap(view) {
  const grid = element("heat-grid").style;
  const fit = (room) => Math.max(10, Math.min(28, Math.floor(room / view.nKeys)));
  grid.setProperty("--cell-type", `${Math.min(14, fit(element("heat").clientWidth - 90))}px`);
  const cell = fit(element("heat").clientWidth - element("heat-rows").offsetWidth - 4);
  grid.setProperty("--cell", `${cell}px`);
  grid.setProperty("--columns", view.nKeys);
}

function titleOfMap(view, query = null, key = null) {
  const layer = `layer ${state.layer + 1}`;
  if (state.head === null) return `Every head of ${layer}`;
  const title = `Head ${state.head + 1} of ${layer}`;
  if (key === null || view.isFuture(query, key)) return title;
  const weight = numbered(view.weightAt(state.head, query, key));
  return `${title}: ${readable(view.queries[query])} \u2192 ${readable(view.keys[key])} ${weight}`;
}

function galleryItem(view, head) {
  const canvas = create("canvas", { "aria-hidden": "true" });
  drawMap(canvas, view, head);
  const caption = create("span", { class: "caption", children: [swatch(head), `head ${head + 1}`] });
  const map = create("span", { class: "map", children: [canvas, create("span", { class: "mark", hidden: "" })] });
  const label = `show head ${head + 1} alone`;
  const button = create("button", { type: "button", "aria-label": label, children: [caption, map] });
  button.addEventListener("click", () => setState(choicesOf({ ...state, head })));
  return button;
}

// One word alone

function meanOverHeads({ heads, weightAt }, query, key) {
  return heads.reduce((sum, head) => sum + weightAt(head, query, key), 0) / heads.length;
}

/** Show the row of the word that is pointed at or kept, or all rows where there is none. */
function isolate(view, key = null) {
  const word = pointed ?? state.word;
  element("view").classList.toggle("isolated", word !== null);
  element("view").dataset.word = word === null ? "" : word + 1;
  for (const [index, button] of [...element("queries").querySelectorAll("button")].entries()) {
    button.classList.toggle("shown", index === word);
    button.setAttribute("aria-pressed", index === state.word);
    button.tabIndex = index === (word ?? 0) ? 0 : -1;
  }
  for (const mark of document.querySelectorAll(".mark")) {
    mark.hidden = word === null;
    mark.style.setProperty("--word", word ?? 0);
    mark.style.setProperty("--rows", view.nQueries);
  }
  const means = view.keys.map((_, index) => (word === null ? 0 : meanOverHeads(view, word, index)));
  const greatest = Math.max(...means);
  [...element("keys").children].forEach((item, index) => {
    const future = word !== null && view.isFuture(word, index);
    setText(item.lastElementChild, word === null || future ? "" : numbered(means[index]));
    item.classList.toggle("faint", means[index] < 0.05);
    item.classList.toggle("strong", word !== null && means[index] === greatest);
  });
  [...element("heat-rows").children].forEach((item, index) => item.classList.toggle("lit", index === word));
  [...element("heat-columns").children].forEach((item, index) => item.classList.toggle("lit", index === key));
  element("heat-title").textContent = titleOfMap(view, word, key);
  renderReadout(view, word, means);
  drawLines(view, word);
}

/** Keep the room of the fullest readout, so that nothing moves when a word is pointed at. */
function reserveRoom(view) {
  const panel = element("readout").parentElement;
  const meansOf = (word) => view.keys.map((_, key) => meanOverHeads(view, word, key));
  const nShown = (word) => meansOf(word).filter((mean) => mean > 0).length;
  const fullest = view.queries.map((_, word) => word).reduce((best, word) => (nShown(word) > nShown(best) ? word : best));
  panel.style.setProperty("--reserved", "0");
  renderReadout(view, fullest, meansOf(fullest));
  panel.style.setProperty("--reserved", `${panel.offsetHeight}px`);
}

function renderReadout(view, word, means) {
  const title = element("readout-title");
  if (word === null) {
    title.textContent = "Choose a piece on the left";
    const hint = "Point at it, tap it or reach it with the keyboard: its row stands alone, its weights in numbers.";
    element("readout").replaceChildren(create("li", { class: "hint", text: hint }));
    return;
  }
  const strongest = (weights) => weights.map((weight, key) => ({ weight, key })).sort((a, b) => b.weight - a.weight);
  const item = (parts, { weight, key }) =>
    create("li", {
      children: [...parts, pieceSpan(view.keys[key]), create("span", { class: "number", text: numbered(weight) })],
    });
  const isSingle = state.head !== null;
  const piece = create("bdi", { text: readable(view.queries[word]) });
  const question = isSingle ? `where head ${state.head + 1} looks` : "where each head looks most";
  title.replaceChildren(`${view.kind.verb} \u201c`, piece, `\u201d: ${question}`);
  element("readout").replaceChildren(...(isSingle
    ? strongest(means).slice(0, 8).filter(({ weight }) => weight > 0).map((best) => item([swatch(state.head)], best))
    : view.heads.map((head) => {
      const [best] = strongest(view.keys.map((_, key) => view.weightAt(head, word, key)));
      return item([swatch(head), create("span", { class: "which", text: head + 1 })], best);
    })));
}

function render() {
  const view = currentView();
  pointed = null;
  theme = themeColours();
  element("source").textContent = view.example.source;
  element("translation").textContent = view.example.translation;
  element("explanation").textContent = view.kind.explains;
  renderChoosers(view);
  renderColumns(view);
  renderMaps(view);
  settle(view);
}

/** What depends on the size of the window. */
function settle(view) {
  fitMap(view);
  reserveRoom(view);
  places = measuredPlaces(view);
  isolate(view);
}

function point(word, key = null) {
  pointed = word;
  isolate(currentView(), key);
}

function listenToWords() {
  const queries = element("queries");
  const wordOf = (event) => {
    const button = event.target.closest("button");
    return button && Number(button.dataset.word);
  };
  queries.addEventListener("pointerover", (event) => event.pointerType === "mouse" && point(wordOf(event)));
  queries.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && point(null));
  queries.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && point(wordOf(event)));
  queries.addEventListener("focusout", () => point(null));
  queries.addEventListener("click", (event) => {
    const word = wordOf(event);
    if (word === null) return;
    keepWord(word === state.word ? null : word);
  });
  queries.addEventListener("keydown", (event) => {
    const buttons = [...queries.querySelectorAll("button")];
    const at = buttons.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || !buttons[to]) return;
    event.preventDefault();
    buttons[to].focus();
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && keepWord(null));
}

/** Keep a word shown when the pointer leaves it; the words stay as they are, so the focus does too. */
function keepWord(word) {
  state = { ...state, word };
  rememberInAddress();
  point(null);
}

function listenToMap() {
  const canvas = element("heat-canvas");
  const cellOf = (event) => {
    const box = canvas.getBoundingClientRect();
    const inside = (share, n) => Math.max(0, Math.min(n - 1, Math.floor(share * n)));
    return [
      inside((event.clientY - box.top) / box.height, canvas.height),
      inside((event.clientX - box.left) / box.width, canvas.width),
    ];
  };
  canvas.addEventListener("pointermove", (event) => point(...cellOf(event)));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("click", (event) => keepWord(cellOf(event)[0]));
}

async function start() {
  examples = await Promise.all(JSON.parse(element("attention-data").textContent).map(unpackedExample));
  const options = examples.map(({ source }, i) => create("option", { value: i + 1, text: `${i + 1}. ${source}` }));
  form.elements.sentence.append(...options);
  element("sentence-choice").hidden = examples.length === 1;
  const fromAddress = () => setState(new URLSearchParams(location.hash.slice(1)));
  form.addEventListener("change", () => {
    const chosen = new URLSearchParams(new FormData(form));
    if (state.word !== null) chosen.set("word", state.word + 1);
    setState(chosen);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", fromAddress);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", render);
  listenToWords();
  listenToMap();
  fromAddress();
  new ResizeObserver(() => settle(currentView())).observe(element("columns"));
  document.documentElement.dataset.ready = "true";
}

await start();
