// The page renders the data and the state; the form and the address (URL fragment) set the state.

const KINDS = {
  encoder: {
    name: "Encoder self-attention", queries: "src", keys: "src",
    queryTitle: "Query (source)", keyTitle: "Key (source)",
    explains: "Queries, keys and values all come from the source: each source token attends to all source tokens.",
  },
  decoder: {
    name: "Decoder self-attention (masked)", queries: "written", keys: "read",
    queryTitle: "Query (predicts)", keyTitle: "Key (target)",
    explains: "Queries, keys and values all come from the target: each position attends to the tokens before the one "
      + "it predicts; later positions are masked. A query is named by the token that it predicts.",
  },
  cross: {
    name: "Cross-attention (encoder-decoder attention)", queries: "written", keys: "src",
    queryTitle: "Query (predicts)", keyTitle: "Key (source)",
    explains: "Queries come from the decoder, keys and values from the output of the encoder. A query is named by the "
      + "target token that it predicts.",
  },
};

const element = (id) => document.getElementById(id);
const form = element("choices");
let examples; // the sentences, weights unpacked
let state; // { sentence, kind, layer, head (null: all), word (the selected query, null: none) }, counted from 0
let hovered = null; // the query under the pointer or with the focus; overrides state.word
let theme; // the current colours
let tokenLayout; // coordinates of tokens, measured only when they change: measuring at each hover forces a reflow

window.addEventListener("error", (event) => showError(event.message));
window.addEventListener("unhandledrejection", (event) => showError(event.reason));

function showError(error) {
  element("error").textContent = `This page could not draw its pictures: ${error}`;
  element("error").hidden = false;
  document.documentElement.dataset.error = String(error);
}

/** Create an element with text, class and attributes; text is never parsed as markup. */
function create(tag, { text, children = [], ...attributes }) {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Set a text only if it changes, to avoid a reflow. */
function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const readable = (token) => (token === "\n" ? "\u21b5" : token.trim() === "" ? "\u2423" : token);
/** Explain the marks in the tokens (word beginnings, BOS, EOS, bytes), one sentence each. */
function describeMarks(tokens) {
  const has = (test) => tokens.some(test);
  const marks = [
    [has((token) => token.startsWith("\u2581")), "\u2581 marks the beginning of a word: a token without it continues "
      + "the word before it, or is punctuation."],
    [has((token) => token === "\n"), "\u21b5 is the end of a line."],
    [has((token) => token === "<s>"), "<s> is the beginning of the sentence (BOS)."],
    [has((token) => token === "</s>"), "</s> is the end of the sentence (EOS)."],
    [has((token) => /\\x[0-9a-f]{2}/.test(token)), "\\x and two digits is one byte of a character."],
  ];
  return marks.filter(([is]) => is).map(([, text]) => text).join(" ");
}

const tokenSpan = (token) => create("span", { text: readable(token), class: "token", dir: "auto", title: token });
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
  const maps = Object.fromEntries(await Promise.all(entries));
  if (!example.picture) return { ...example, maps };
  return { ...example, maps, picture: { ...example.picture, ...(await unpacked(example.picture)) } };
}

/** Return what the state selects: tokens, sizes, shown heads and the weights of the layer. */
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

// The address: #sentence=1&kind=cross&layer=2&head=all&word=4, counted from 1. Invalid values become the default.

function stateFrom(params) {
  const within = (name, n, fallback) => {
    const number = Number(params.get(name));
    return Number.isInteger(number) && number >= 1 && number <= n ? number - 1 : fallback;
  };
  const sentence = within("sentence", examples.length, 0);
  const { maps } = examples[sentence]; // a recurrent model has only cross-attention, a language model has none
  const kind = [params.get("kind"), "cross", "decoder", "encoder"].find((name) => Object.hasOwn(maps, name));
  const [nLayers, nHeads, nQueries] = maps[kind].shape;
  return {
    sentence, kind,
    layer: within("layer", nLayers, nLayers - 1),
    head: within("head", nHeads, null),
    word: within("word", nQueries, null),
  };
}

/** The inverse of `stateFrom`: the parameters of the address and the form. */
function choicesOf({ sentence, kind, layer, head, word }) {
  const choices = { sentence: sentence + 1, kind, layer: layer + 1, head: head === null ? "all" : head + 1 };
  return new URLSearchParams(word === null ? choices : { ...choices, word: word + 1 });
}

const updateAddress = () => history.replaceState(null, "", `#${choicesOf(state)}`);

function setState(params) {
  state = stateFrom(params);
  updateAddress();
  render();
}

// Choosers

function radios(name, options) {
  const box = element(`${name}-options`);
  const signature = options.map(({ value }) => value).join();
  if (box.dataset.values === signature) return; // rebuilding would lose the focus
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
  const kinds = Object.entries(KINDS).filter(([value]) => Object.hasOwn(view.example.maps, value));
  radios("kind", kinds.map(([value, { name }]) => ({ value, text: name, label: name })));
  radios("layer", count(view.nLayers, "layer"));
  radios("head", [
    { value: "all", text: "all", label: "all heads" },
    ...count(view.nHeads, "head").map((one, head) => ({ ...one, children: [swatch(head)] })),
  ]);
  const chosen = choicesOf(state);
  for (const name of ["sentence", "kind", "layer", "head"]) form.elements[name].value = chosen.get(name);
}

// The two columns of tokens

function renderColumns(view) {
  const { queries, keys, kind } = view;
  element("query-title").textContent = kind.queryTitle;
  element("key-title").textContent = kind.keyTitle;
  element("number-title").textContent = state.head === null ? "mean" : "weight";
  element("queries").replaceChildren(...queries.map((token, word) => {
    const read = kind.queries === "written" ? `, input ${view.example.read[word]}` : "";
    return create("li", { children: [create("button", {
      type: "button", text: readable(token), dir: "auto", title: token, "data-word": word,
      "aria-label": `query ${readable(token)}${read}`,
    })] });
  }));
  element("keys").replaceChildren(...keys.map((token) =>
    create("li", { children: [tokenSpan(token), create("span", { class: "number" })] })));
  element("columns").style.setProperty("--n-heads", view.heads.length);
  element("lines-note").textContent = state.head === null
    ? `No query selected: lines show the ${N_STRONGEST} greatest weights of each query, in the mean over heads. Query `
      + "selected: all its weights, one colour and one column of cells per head."
    : `No query selected: lines show the ${N_STRONGEST} greatest weights of each query. Query selected: all of its`
      + " weights.";
  const minRow = parseInt(getComputedStyle(element("columns")).getPropertyValue("--min-row")) || 20;
  const row = Math.max(minRow, Math.min(30, Math.floor(760 / Math.max(queries.length, keys.length))));
  element("columns").style.setProperty("--row", `${row}px`);
  element("columns").style.setProperty("--type", `${Math.min(16, row - 6)}px`);
}

/** Measure where the tokens of both columns are, in pixels of the canvas between them. */
function measureTokenLayout(view) {
  const box = element("lines").getBoundingClientRect();
  const queries = element("queries").getBoundingClientRect();
  const keys = element("keys").getBoundingClientRect();
  const token = element("keys").querySelector(".token").getBoundingClientRect();
  const row = queries.height / view.nQueries;
  return {
    row, left: queries.right - box.left, keys: keys.left - box.left, tokens: token.left - box.left,
    y: (index) => queries.top - box.top + (index + 0.5) * row,
    fan: (slot) => ((slot + 0.5) / view.heads.length - 0.5) * row * 0.7,
  };
}

function drawLines(view, word) {
  const right = word === null ? tokenLayout.tokens : tokenLayout.keys;
  const layout = { ...tokenLayout, right, strip: tokenLayout.tokens - tokenLayout.keys };
  const context = freshContext(element("lines"));
  if (word !== null) return drawRow(context, word, { ...view, layout, theme });
  const isMean = state.head === null;
  const weightAt = (query, key) => (isMean ? meanOverHeads(view, query, key) : view.weightAt(state.head, query, key));
  drawAllQueries(context, { ...view, weightAt, colour: isMean ? theme.mean : colourOfHead(theme, state.head), layout });
}

/** Number the cells of the strip: every head, or every other one where the cells are too narrow. */
function numberStrip(view) {
  const cell = (tokenLayout.tokens - tokenLayout.keys) / view.heads.length;
  const step = Math.ceil((view.heads.length < 10 ? 9 : 13) / cell); // room for one or two digits
  const numbered = state.head === null ? view.heads.filter((head) => head % step === 0) : [];
  element("strip-heads").replaceChildren(...numbered.map((head) => {
    const span = create("span", { text: head + 1 });
    span.style.setProperty("left", `${(head + 0.5) * cell}px`);
    return span;
  }));
}

// Maps

const MIN_CELL_PIXELS = 14; // pixels: labels of 12 pixels, one per cell

function drawMap(canvas, view, head) {
  const weightAt = (query, key) => (view.isFuture(query, key) ? null : view.weightAt(head, query, key));
  drawCells(canvas, { nRows: view.nQueries, nColumns: view.nKeys, weightAt, colour: colourOfHead(theme, head), theme });
}

function renderMaps(view) {
  const isGallery = state.head === null;
  element("gallery").hidden = !isGallery;
  element("heat").hidden = isGallery;
  element("future-key").hidden = state.kind !== "decoder";
  const colour = isGallery ? theme.mean : colourOfHead(theme, state.head);
  element("heat-note").textContent = isGallery
    ? "Rows are queries, columns are keys. Choose a map to enlarge it."
    : "Rows are queries, columns are keys. Point at a cell for its weight.";
  drawCells(element("scale"), { nRows: 1, nColumns: 256, weightAt: (_, step) => step / 255, colour, theme });
  if (isGallery) {
    const side = Math.max(118, Math.min(180, 2.3 * view.nKeys)); // pixels
    element("gallery").style.setProperty("--map", `${side}px`);
    element("gallery").replaceChildren(...view.heads.map((head) => galleryItem(view, head)));
    return;
  }
  drawMap(element("heat-canvas"), view, state.head);
  const sizes = `${view.nQueries} by ${view.nKeys} weights`;
  element("heat-canvas").setAttribute("aria-label", `${view.kind.name}, ${titleOfMap(view)}: ${sizes}`);
  const label = (token) => create("span", { text: readable(token), dir: "auto" });
  element("heat-rows").replaceChildren(...view.queries.map(label));
  element("heat-columns").replaceChildren(...view.keys.map(label));
}

/** Fit the cells of the map to its panel; a map too wide for it gets the full width, and scrolls if still too wide. */
function fitMap(view) {
  const grid = element("heat-grid").style;
  const fits = () => element("heat").clientWidth - element("heat-rows").offsetWidth - 4 >= MIN_CELL_PIXELS * view.nKeys;
  const setCell = (cell) => {
    grid.setProperty("--cell", `${cell}px`);
    grid.setProperty("--cell-type", `${Math.min(14, cell - 2)}px`);
  };
  grid.setProperty("--columns", view.nKeys);
  setCell(MIN_CELL_PIXELS);
  element("view").classList.remove("wide");
  if (state.head === null) return;
  element("view").classList.toggle("wide", !fits());
  const room = element("heat").clientWidth - 110; // the widest labels
  setCell(Math.max(MIN_CELL_PIXELS, Math.min(40, Math.floor(room / view.nKeys))));
}

function titleOfMap(view, query = null, key = null) {
  const layer = `Layer ${state.layer + 1}`;
  if (state.head === null) return `${layer}, all heads`;
  const title = `${layer}, head ${state.head + 1}`;
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

// One query alone

function meanOverHeads({ heads, weightAt }, query, key) {
  return heads.reduce((sum, head) => sum + weightAt(head, query, key), 0) / heads.length;
}

/** Show the row of the hovered or selected query; all rows if there is none. */
function showQuery(view, key = null) {
  const word = hovered ?? state.word;
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
  showPicture(view, word, means);
  drawLines(view, word);
}

/** Draw the image or the spectrogram, if the source is one, with the weights of a query over its places. */
function showPicture(view, word, means) {
  const { picture } = view.example;
  element("picture").hidden = !picture;
  if (!picture) return;
  element("picture-title").textContent = picture.name;
  const canvas = element("picture-canvas");
  canvas.setAttribute("aria-label", `${picture.name} of ${view.example.source}`);
  const hasPlaces = word !== null && view.kind.keys === "src";
  drawPicture(canvas, {
    ...picture, theme, weights: hasPlaces ? means : null,
    colour: state.head === null ? theme.heads[1] : colourOfHead(theme, state.head),
  });
}

/** Reserve the height of the longest readout, so that the page does not jump while hovering. */
function reserveReadoutHeight(view) {
  const panel = element("readout").parentElement;
  const meansOf = (word) => view.keys.map((_, key) => meanOverHeads(view, word, key));
  const nShown = (word) => meansOf(word).filter((mean) => mean > 0).length;
  const words = view.queries.map((_, word) => word);
  const fullest = words.reduce((best, word) => (nShown(word) > nShown(best) ? word : best));
  panel.style.setProperty("--reserved", "0");
  renderReadout(view, fullest, meansOf(fullest));
  panel.style.setProperty("--reserved", `${panel.offsetHeight}px`);
}

function renderReadout(view, word, means) {
  const title = element("readout-title");
  if (word === null) {
    title.textContent = "Select a query token on the left";
    const hint = "Its weights are then listed here, with lines and cells for each head.";
    element("readout").replaceChildren(create("li", { class: "hint", text: hint }));
    return;
  }
  const inOrder = (weights) => weights.map((weight, key) => ({ weight, key })).sort((a, b) => b.weight - a.weight);
  const item = (parts, { weight, key }) =>
    create("li", {
      children: [...parts, tokenSpan(view.keys[key]), create("span", { class: "number", text: numbered(weight) })],
    });
  const isSingle = state.head !== null;
  const token = create("bdi", { text: readable(view.queries[word]) });
  const answer = isSingle ? `greatest weights of head ${state.head + 1}` : "each head\u2019s greatest weight";
  title.replaceChildren("Query \u201c", token, `\u201d: ${answer}`);
  element("readout").replaceChildren(...(isSingle
    ? inOrder(means).slice(0, 8).filter(({ weight }) => weight > 0).map((best) => item([swatch(state.head)], best))
    : view.heads.map((head) => {
      const [best] = inOrder(view.keys.map((_, key) => view.weightAt(head, word, key)));
      return item([swatch(head), create("span", { class: "which", text: head + 1 })], best);
    })));
}

function render() {
  const view = currentView();
  hovered = null;
  theme = themeColours();
  const isPair = Object.hasOwn(view.example.maps, "cross"); // else the text of a language model, on one side
  for (const side of ["source", "translation"]) {
    element(side).textContent = view.example[side];
    element(`${side}-line`).hidden = view.example[side] === "" && !isPair;
    const written = view.example.picture ? "Text" : "Translation";
    element(`${side}-label`).textContent = isPair ? (side === "source" ? "Source" : written) : "Text";
  }
  element("explanation").textContent = view.kind.explains;
  element("marks").textContent = describeMarks([...view.queries, ...view.keys]);
  renderChoosers(view);
  renderColumns(view);
  renderMaps(view);
  updateLayout(view);
}

/** Update what depends on the size of the window. */
function updateLayout(view) {
  fitMap(view);
  reserveReadoutHeight(view);
  tokenLayout = measureTokenLayout(view);
  numberStrip(view);
  showQuery(view);
}

function hoverQuery(word, key = null) {
  hovered = word;
  showQuery(currentView(), key);
}

function addQueryListeners() {
  const queries = element("queries");
  const wordOf = (event) => {
    const button = event.target.closest("button");
    return button && Number(button.dataset.word);
  };
  queries.addEventListener("pointerover", (event) => event.pointerType === "mouse" && hoverQuery(wordOf(event)));
  queries.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hoverQuery(null));
  queries.addEventListener("focusin", (event) => event.target.matches(":focus-visible") && hoverQuery(wordOf(event)));
  queries.addEventListener("focusout", () => hoverQuery(null));
  queries.addEventListener("click", (event) => {
    const word = wordOf(event);
    if (word === null) return;
    selectQuery(word === state.word ? null : word);
  });
  queries.addEventListener("keydown", (event) => {
    const buttons = [...queries.querySelectorAll("button")];
    const at = buttons.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || !buttons[to]) return;
    event.preventDefault();
    buttons[to].focus();
  });
  document.addEventListener("keydown", (event) => event.key === "Escape" && selectQuery(null));
}

/** Select a query, so that it stays shown when the pointer leaves. Tokens are not rebuilt, to keep the focus. */
function selectQuery(word) {
  state = { ...state, word };
  updateAddress();
  hoverQuery(null);
}

function addMapListeners() {
  const canvas = element("heat-canvas");
  const cellOf = (event) => {
    const box = canvas.getBoundingClientRect();
    const inside = (share, n) => Math.max(0, Math.min(n - 1, Math.floor(share * n)));
    return [
      inside((event.clientY - box.top) / box.height, canvas.height),
      inside((event.clientX - box.left) / box.width, canvas.width),
    ];
  };
  canvas.addEventListener("pointermove", (event) => hoverQuery(...cellOf(event)));
  canvas.addEventListener("pointerleave", () => hoverQuery(null));
  canvas.addEventListener("click", (event) => selectQuery(cellOf(event)[0]));
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
  addQueryListeners();
  addMapListeners();
  fromAddress();
  new ResizeObserver(() => updateLayout(currentView())).observe(element("columns"));
  document.documentElement.dataset.ready = "true";
}

await start();
