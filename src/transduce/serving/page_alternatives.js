// Alternatives of a word on the page of the server, and the page's events.

// Alternatives

async function openMenu(element) {
  if (isUnchanged()) return;
  const sentence = sentences[element.dataset.sentence];
  const cut = Number(element.dataset.start ?? 0);
  const prefix = sentence.translation.slice(0, cut);
  opener = element;
  fillMenu([note("Looking for alternatives")]);
  menu.hidden = false;
  place(element);
  menu.focus();
  try {
    const { alternatives } = await post("alternatives", { q: sentence.source, prefix, n: 6, ...direction });
    if (opener !== element) return;
    const others = alternatives.map((each) => each.text).filter((each) => each !== sentence.translation);
    fillMenu(others.length ? others.map((each) => choice(each, cut)) : [note("The model has no other translation")]);
    place(element);
    select(0);
  } catch (error) {
    closeMenu();
    fail(error);
  }
}

function note(words) {
  const item = document.createElement("li");
  Object.assign(item, { className: "is-note", textContent: words });
  return item;
}

function choice(alternative, cut) {
  const item = document.createElement("li");
  item.setAttribute("role", "option");
  item.dataset.text = alternative;
  const same = document.createElement("span");
  same.className = "same";
  same.textContent = alternative.slice(0, cut);
  item.append(same, alternative.slice(cut));
  return item;
}

function fillMenu(items) {
  menu.replaceChildren(...items);
  menu.removeAttribute("aria-activedescendant");
  items.forEach((item, index) => (item.id = `choice-${index}`));
}

function place(element) {
  const box = element.getBoundingClientRect();
  const left = Math.min(box.left, root.clientWidth - menu.offsetWidth - 12);
  menu.style.left = `${Math.max(8, left) + scrollX}px`;
  menu.style.top = `${box.bottom + scrollY + 4}px`;
}

function select(index) {
  const items = [...menu.querySelectorAll('[role="option"]')];
  if (!items.length) return;
  const wanted = items[(index + items.length) % items.length];
  for (const item of items) item.setAttribute("aria-selected", item === wanted);
  menu.setAttribute("aria-activedescendant", wanted.id);
  wanted.scrollIntoView({ block: "nearest" });
}

function closeMenu({ returnsFocus = false } = {}) {
  if (menu.hidden) return;
  menu.hidden = true;
  if (returnsFocus && opener?.isConnected) opener.focus();
  opener = null;
}

function choose(item) {
  const number = Number(opener.dataset.sentence);
  const word = Number(opener.dataset.word ?? 0);
  const sentence = { ...sentences[number], translation: item.dataset.text, alignment: null };
  sentences[number] = sentence;
  remember(chosen, keyOf(sentence.source), sentence.translation);
  active = { sentence: number, start: Number(opener.dataset.start ?? 0) };
  closeMenu();
  draw();
  const again = output.querySelector(`.word[data-sentence="${number}"][data-word="${word}"]`) ?? output.querySelector(".word");
  focusWord(again);
  $("status").textContent = "Changed";
}

function focusWord(word) {
  for (const each of output.querySelectorAll('.word[tabindex="0"]')) each.tabIndex = -1;
  word.tabIndex = 0;
  word.focus();
}

// Events

text.addEventListener("input", () => { mark(null); schedule(); });
text.addEventListener("scroll", () => { $("marks").scrollTop = text.scrollTop; });
$("source").addEventListener("change", () => { fillTargets($("target").value); schedule(0); });
$("target").addEventListener("change", () => { fillTargets($("target").value); schedule(0); });
$("key").addEventListener("change", () => schedule(0));
$("probabilities").addEventListener("change", showActive);
$("swap").addEventListener("click", () => {
  const [from, to] = [$("source").value, $("target").value];
  const translated = sentences.map((each) => each.translation + each.space).join("");
  $("source").value = to;
  fillTargets(from);
  if (translated && !isOld()) text.value = translated;
  schedule(0);
});
$("copy").addEventListener("click", async () => {
  if (isOld()) return void ($("status").textContent = "Not copied: the translation is of an earlier text");
  const words = sentences.map((each) => each.translation + each.space).join("");
  try {
    await navigator.clipboard.writeText(words);
    $("status").textContent = "Copied";
  } catch {
    $("status").textContent = "The browser does not allow copying; select the text instead";
  }
});
for (const kind of ["pointerover", "focusin"])
  output.addEventListener(kind, ({ target }) => {
    const word = target.closest?.(".word");
    if (word && menu.hidden) point(Number(word.dataset.sentence), Number(word.dataset.start));
  });
output.addEventListener("click", ({ target }) => {
  const element = target.closest(".word, .more");
  if (!element || String(getSelection())) return;
  if (element.classList.contains("word")) {
    focusWord(element);
    point(Number(element.dataset.sentence), Number(element.dataset.start));
  }
  openMenu(element);
});
output.addEventListener("keydown", (event) => {
  const word = event.target.closest(".word");
  if (!word) return;
  const words = [...output.querySelectorAll(".word")];
  const place = words.indexOf(word);
  const moves = { ArrowRight: place + 1, ArrowLeft: place - 1, ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: words.length - 1 };
  if (event.key in moves) {
    event.preventDefault();
    focusWord(words[Math.max(0, Math.min(words.length - 1, moves[event.key]))]);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openMenu(word);
  }
});
menu.addEventListener("keydown", (event) => {
  const items = [...menu.querySelectorAll('[role="option"]')];
  const place = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown") select(place + 1);
  else if (event.key === "ArrowUp") select(place - 1);
  else if (event.key === "Home") select(0);
  else if (event.key === "End") select(items.length - 1);
  else if (event.key === "Enter" && items[place]) choose(items[place]);
  else if (event.key === "Escape" || event.key === "Tab") closeMenu({ returnsFocus: true });
  else return;
  event.preventDefault();
});
menu.addEventListener("click", ({ target }) => {
  const item = target.closest('[role="option"]');
  if (item) choose(item);
});
document.addEventListener("pointerdown", ({ target }) => {
  if (!menu.hidden && !menu.contains(target)) closeMenu();
});
$("target-words").addEventListener("pointerover", ({ target }) => {
  const cell = target.closest(".cell");
  const alignment = sentences[active?.sentence]?.alignment;
  if (!cell || !alignment) return;
  const word = [...$("target-words").children].indexOf(cell);
  active = { sentence: active.sentence, start: piece(alignment.translation, [0, alignment.target_words[word][0]]).length };
  light(alignment, word);
  mark(sentences[active.sentence], word);
});
addEventListener("resize", () => showActive());

start();
