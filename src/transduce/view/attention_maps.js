// The maps of the attention page, and one query alone.

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
