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
