// The page of the server. State: the sentences of the translation; everything on the page is drawn from them.
const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const [text, output, menu] = [$("text"), $("output"), $("menu")];
const PAUSE_MS = 250; // after the last key
const MAX_CACHED = 500;

let sentences = []; // {source, space, translation, start, alignment}
let direction = null; // {source, target} of the translation that is shown
let languages = [];
let pending = null; // AbortController of the translation under way
let timer = 0;
const isOld = () => output.classList.contains("is-old"); // the translation is of an earlier text
let active = null; // {sentence, start}: its index, and the place of the word that is pointed at
let opener = null; // the element that the menu belongs to
const chosen = new Map(); // the translations that the user chose, by direction and source
const alignments = new Map();

function remember(map, key, value) {
  map.delete(key);
  map.set(key, value);
  if (map.size > MAX_CACHED) map.delete(map.keys().next().value);
}

const post = (path, fields, signal) =>
  send(path, JSON.stringify(fields), { "Content-Type": "application/json" }, signal);

async function send(path, body, headers = {}, signal = undefined) {
  if ($("key").value) headers.Authorization = `Bearer ${$("key").value}`;
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(path, { method: "POST", headers, body, signal });
    if (response.ok) return response.json();
    const retry = Number(response.headers.get("Retry-After"));
    if ([429, 503].includes(response.status) && retry && attempt < 3) {
      await new Promise((done) => setTimeout(done, Math.min(retry, 5) * 1000));
      if (signal?.aborted) throw new DOMException("", "AbortError");
      continue;
    }
    const answer = await response.json().catch(() => ({}));
    throw new Error(answer.error ?? `the server answered ${response.status}`);
  }
}

function fail(error) {
  if (error.name === "AbortError") return;
  $("error").textContent = error instanceof TypeError ? "The server cannot be reached." : error.message;
  $("error").hidden = false;
  $("status").textContent = "";
}

// Languages

const nameOf = (code) => languages.find((each) => each.code === code)?.name ?? code;

function fillTargets(preferred) {
  const from = $("source").value;
  const all = from === "auto" ? languages.flatMap((each) => each.targets) : languages.find((each) => each.code === from).targets;
  const codes = [...new Set(all)].sort();
  $("target").replaceChildren(...codes.map((code) => new Option(nameOf(code), code)));
  if (codes.includes(preferred)) $("target").value = preferred;
  const to = languages.find((each) => each.code === $("target").value);
  $("swap").disabled = from === "auto" || !to?.targets.includes(from);
}

async function start() {
  try {
    const [known, settings] = await Promise.all(
      ["languages", "frontend/settings"].map(async (path) => (await fetch(path)).json()),
    );
    languages = known;
    const sources = languages.filter((each) => each.targets.length);
    $("key-label").hidden = !settings.apiKeys;
    $("files").accept = settings.supportedFilesFormat.join();
    if (!sources.length) {
      $("error").textContent = "This server has no translator. Its other models are described in openapi.json.";
      $("error").hidden = false;
      text.disabled = true;
    } else {
      const auto = sources.length > 1 ? [new Option("Detect language", "auto")] : [];
      $("source").replaceChildren(...auto, ...sources.map((each) => new Option(each.name, each.code)));
      $("source").value = settings.language.source.code;
      fillTargets(settings.language.target.code);
      $("choose").hidden = !settings.filesTranslation;
    }
  } catch (error) {
    fail(error);
  }
  root.dataset.ready = "true";
  if (text.value) schedule(0);
}

// Translation

function schedule(pause = PAUSE_MS) {
  clearTimeout(timer);
  pending?.abort();
  closeMenu();
  $("count").textContent = text.value ? `${text.value.length.toLocaleString("en")} characters` : "";
  text.lang = $("source").value === "auto" ? "" : $("source").value;
  if (!text.value.trim()) {
    sentences = [];
    draw();
    $("status").textContent = "";
    return;
  }
  output.classList.toggle("is-old", sentences.length > 0);
  timer = setTimeout(translate, pause);
}

async function translate() {
  pending = new AbortController();
  const { signal } = pending;
  const q = text.value;
  $("status").textContent = "Translating";
  root.dataset.busy = "true";
  try {
    const answer = await post("sentences", { q, source: $("source").value, target: $("target").value }, signal);
    direction = { source: answer.source, target: answer.target };
    let position = 0;
    sentences = answer.sentences.map(({ source, space, translation }) => {
      const found = q.indexOf(source, position);
      const begin = found < 0 ? position : found;
      position = begin + source.length;
      return { source, space, start: begin, translation: chosen.get(keyOf(source)) ?? translation, alignment: null };
    });
    $("error").hidden = true;
    $("status").textContent = $("source").value !== "auto" ? "" : isUnchanged() ? `The text is in ${nameOf(answer.source)}` : `Translated from ${nameOf(answer.source)}`;
    output.lang = answer.target;
    active = null;
    draw();
  } catch (error) {
    fail(error);
  } finally {
    if (pending?.signal === signal) delete root.dataset.busy;
  }
}

const keyOf = (source) => `${direction.source} ${direction.target} ${source}`;

// Drawing

const WORD = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}]\p{M}*|[\p{L}\p{N}][\p{L}\p{N}\p{M}\u200c\u200d]*(?:['’-][\p{L}\p{N}][\p{L}\p{N}\p{M}\u200c\u200d]*)*|[^\p{L}\p{N}\s][\p{M}\u200c\u200d]*/gu;

function draw() {
  output.classList.remove("is-old");
  output.replaceChildren(...sentences.flatMap(drawnSentence));
  const first = output.querySelector(".word");
  if (first) first.tabIndex = 0;
  $("copy").hidden = !sentences.some((each) => each.translation);
  if (!sentences.length) $("attention").hidden = true;
  mark(null);
  showActive();
}

function drawnSentence(sentence, number) {
  if (!sentence.translation) return [sentence.space];
  const span = document.createElement("span");
  span.className = "sentence";
  let end = 0;
  let index = 0;
  for (const match of sentence.translation.matchAll(WORD)) {
    span.append(sentence.translation.slice(end, match.index));
    const word = document.createElement("span");
    Object.assign(word, { className: "word", tabIndex: -1, textContent: match[0] });
    word.setAttribute("role", "button");
    word.setAttribute("aria-haspopup", "listbox");
    Object.assign(word.dataset, { sentence: number, word: index++, start: match.index });
    span.append(word);
    end = match.index + match[0].length;
  }
  span.append(sentence.translation.slice(end));
  const more = document.createElement("button");
  Object.assign(more, { type: "button", className: "more", textContent: "\u22ef" });
  more.setAttribute("aria-label", `Alternatives of sentence ${number + 1}`);
  more.setAttribute("aria-haspopup", "listbox");
  more.dataset.sentence = number;
  return [span, more, sentence.space];
}

// Attention

// A text that is in the target language already is shown as it is, unless a model works within that, as in correction.
const targetsOf = (code) => languages.find((each) => each.code === code)?.targets ?? [];
const isUnchanged = () => direction.source === direction.target && !targetsOf(direction.source).includes(direction.target);

async function alignmentOf(sentence) {
  const key = `${keyOf(sentence.source)}\n${sentence.translation}`;
  if (!alignments.has(key)) {
    const fields = { q: sentence.source, translation: sentence.translation, ...direction };
    const asked = post("alignment", fields);
    remember(alignments, key, asked);
    asked.catch(() => alignments.delete(key));
  }
  return alignments.get(key);
}

// The server's word at a place of the translation, -1 if none: it takes a URL, which is drawn as several, as one word.
function wordAt(alignment, start) {
  const place = Array.from(alignment.translation.slice(0, start)).length;
  return alignment.target_words.findIndex(([begin, end]) => begin <= place && place < end);
}

function point(sentence, start) {
  if (active?.sentence === sentence && active?.start === start) return;
  active = { sentence, start };
  showActive();
}

async function showActive() {
  for (const span of output.querySelectorAll(".sentence.is-active")) span.classList.remove("is-active");
  if (!active || isUnchanged() || !sentences[active.sentence]?.translation) {
    $("attention").hidden = true;
    return;
  }
  const wanted = active;
  const sentence = sentences[wanted.sentence];
  let alignment;
  try {
    alignment = await alignmentOf(sentence);
  } catch (error) {
    return fail(error);
  }
  if (active !== wanted || sentences[wanted.sentence] !== sentence) return;
  sentence.alignment = alignment;
  output.querySelector(`.word[data-sentence="${wanted.sentence}"]`)?.parentElement.classList.add("is-active");
  showProbabilities();
  const word = wordAt(alignment, wanted.start);
  drawAlignment(alignment, word);
  mark(sentence, word);
}

function showProbabilities() {
  const shows = $("probabilities").checked;
  output.classList.toggle("shows-probabilities", shows);
  $("probability-note").hidden = !shows;
  for (const word of output.querySelectorAll(".word")) {
    const alignment = sentences[word.dataset.sentence]?.alignment;
    const p = alignment?.probabilities[wordAt(alignment, word.dataset.start)];
    if (p === undefined) continue;
    word.dataset.p = p;
    word.style.setProperty("--p", p);
    word.title = shows ? `model probability ${percent(p)}` : "";
  }
}

const percent = (p) => (p > 0 && p < 0.01 ? "< 1 %" : `${Math.round(100 * p)} %`);
const piece = (from, [start, end]) => Array.from(from).slice(start, end).join(""); // places count characters

function drawAlignment(alignment, selected) {
  $("attention").hidden = false;
  const cells = (row, from, spans) =>
    row.replaceChildren(...spans.map((span) => {
      const cell = document.createElement("span");
      cell.className = "cell";
      cell.append(piece(from, span));
      return cell;
    }));
  cells($("source-words"), alignment.source, alignment.source_words);
  cells($("target-words"), alignment.translation, alignment.target_words);
  if ($("probabilities").checked)
    [...$("target-words").children].forEach((cell, index) => {
      const small = document.createElement("small");
      small.textContent = percent(alignment.probabilities[index]);
      cell.append(small);
    });
  light(alignment, selected);
}

function light(alignment, selected) {
  const [sources, targets] = [[...$("source-words").children], [...$("target-words").children]];
  const weights = alignment.attention[selected] ?? [];
  targets.forEach((cell, index) => cell.classList.toggle("is-lit", index === selected));
  sources.forEach((cell, index) => {
    cell.classList.toggle("is-lit", (weights[index] ?? 0) > 0.05);
    cell.style.setProperty("--weight", weights[index] ?? 0);
  });
  const svg = $("lines");
  const box = $("alignment");
  svg.setAttribute("width", box.scrollWidth);
  svg.setAttribute("height", box.scrollHeight);
  const middle = (cell) => cell.offsetLeft + cell.offsetWidth / 2 + cell.parentElement.offsetLeft;
  const top = $("source-words").offsetTop + $("source-words").offsetHeight + 2;
  const bottom = $("target-words").offsetTop - 2;
  const lines = [];
  alignment.attention.forEach((row, target) => row.forEach((weight, source) => {
    if (weight < 0.05 || (targets[selected] && target !== selected)) return;
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [name, value] of Object.entries({ x1: middle(sources[source]), y1: top, x2: middle(targets[target]), y2: bottom }))
      line.setAttribute(name, value);
    line.setAttribute("stroke-opacity", weight);
    lines.push(line);
  }));
  svg.replaceChildren(...lines);
  const best = weights.map((weight, index) => [weight, index]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([weight]) => weight > 0.05);
  const word = alignment.target_words[selected];
  $("reading").textContent = word
    ? `\u201c${piece(alignment.translation, word)}\u201d looked at ${best.map(([weight, index]) =>
        `\u201c${piece(alignment.source, alignment.source_words[index])}\u201d (attention ${weight.toFixed(2)})`).join(", ")}` +
      ($("probabilities").checked ? `; model probability ${percent(alignment.probabilities[selected])}` : "")
    : "";
}

// The words of the source that a word of the translation looked at, behind the text that is typed.
function mark(sentence, selected) {
  const marks = $("marks");
  const weights = sentence?.alignment?.attention[selected];
  if (!weights) return marks.replaceChildren();
  const { source, source_words: words } = sentence.alignment;
  const parts = [];
  let end = 0;
  let position = sentence.start;
  words.forEach((span, index) => {
    const word = piece(source, span);
    const begin = text.value.indexOf(word, position);
    if (begin < 0 || begin > position + 200) return;
    position = begin + word.length;
    if (weights[index] < 0.05) return;
    const element = document.createElement("mark");
    element.style.setProperty("--weight", weights[index]);
    element.textContent = word;
    parts.push(text.value.slice(end, begin), element);
    end = position;
  });
  marks.replaceChildren(...parts, text.value.slice(end));
  marks.scrollTop = text.scrollTop;
}
