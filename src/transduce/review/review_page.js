// The page: its list of texts, filters, keys, and what is kept in the browser.

const data = JSON.parse(document.getElementById('review-data').textContent)
const list = document.getElementById('texts')
const form = document.getElementById('choices')
const message = document.getElementById('message')
const storageKey = `transduce-review-${data.key}`
const rows = data.texts.map(row)
let editing = null // the row that is edited

function row(text) {
  const item = element('li')
  item.tabIndex = -1
  const done = element('input')
  done.type = 'checkbox'
  const about = element('div', 'about', element('span', 'place', text.place))
  if (text.state && !BAD_STATES.includes(text.state)) about.append(element('span', 'state', STATES[text.state] ?? text.state))
  const mean = meanProbability(text.words)
  if (mean !== null) about.append(element('span', 'probability', `model probability ${percent(mean)} a word`))
  about.append(element('label', '', done, ' done'))
  const [source, target] = [element('div', 'source'), element('div', 'target')]
  Object.assign(source, { dir: 'auto', lang: data.src })
  Object.assign(target, { dir: 'auto', lang: data.tgt })
  source.append(...shownPieces(text.source ?? []))
  item.append(about, source, target)
  const notes = notesOf(text)
  if (notes.length) item.append(element('ul', 'notes', ...notes))
  const made = { text, item, target, done, pieces: text.target ?? [], isEdited: false, isDone: false }
  item.row = made
  show(made)
  return made
}

function show(each) {
  each.target.replaceChildren(...shownPieces(each.pieces, each.isEdited ? [] : each.text.words))
  each.item.classList.toggle('edited', each.isEdited)
  each.item.classList.toggle('done', each.isDone)
  each.done.checked = each.isDone
}

// Edits in the browser's storage, by the number of the text.
function remember() {
  const kept = rows.flatMap((each, index) =>
    each.isEdited || each.isDone ? [[index, each.isEdited ? each.pieces : null, each.isDone]] : [],
  )
  try {
    localStorage.setItem(storageKey, JSON.stringify(kept))
  } catch {
    say('This browser keeps no edits of pages from a disk: save them as TMX before you close the page.')
  }
  count()
}

function recall() {
  let kept
  try {
    kept = JSON.parse(localStorage.getItem(storageKey) ?? '[]')
  } catch {
    return
  }
  for (const [index, pieces, isDone] of kept) {
    const each = rows[index]
    Object.assign(each, { isDone, isEdited: pieces !== null, pieces: pieces ?? each.pieces })
    show(each)
  }
}

// The texts before and after one: of those that a memory is asked for.
function beside(each, asked) {
  const index = asked.indexOf(each)
  const both = index < 0 ? [] : [asked[index - 1], asked[index + 1]]
  return both.map((other) => other && (other.text.key ?? plainText(other.text.source ?? [])))
}

const chosen = () => rows.filter((each) => each.isEdited || each.isDone)

function count() {
  const shown = rows.filter((each) => !each.item.hidden).length
  const done = rows.filter((each) => each.isDone).length
  const n = chosen().length
  const of = (number, what) => `${number.toLocaleString('en')} ${what}`
  document.getElementById('count').textContent = `${of(shown, `of ${rows.length.toLocaleString('en')} texts`)}, ${of(done, 'done')}`
  const save = document.getElementById('save')
  save.textContent = n ? `Save ${n.toLocaleString('en')} as TMX` : 'Save as TMX'
  save.disabled = n === 0
}

function say(what) {
  message.textContent = what
  message.hidden = !what
}

const FILTERS = {
  all: () => true,
  warnings: (each) => hasWarning(each.text),
  unsure: (each) => isUnsure(each.text),
  memory: (each) => Boolean(each.text.similar),
  open: (each) => !each.isDone,
  edited: (each) => each.isEdited,
}

function filter() {
  const fits = FILTERS[form.elements.filter.value]
  const words = form.elements.words.value.toLocaleLowerCase()
  for (const each of rows) {
    const text = words && `${plainText(each.text.source ?? [])}\n${plainText(each.pieces)}`.toLocaleLowerCase()
    each.item.hidden = !(fits(each) && (!words || text.includes(words)))
  }
  document.getElementById('nothing').hidden = rows.some((each) => !each.item.hidden)
  count()
}

function edit(each) {
  if (editing === each) return
  if (editing) keep()
  editing = each
  each.target.contentEditable = 'true'
  each.target.replaceChildren(...each.pieces.map((piece) => (isTag(piece) ? movable(piece) : piece)))
  each.target.focus()
  const end = document.createRange()
  end.selectNodeContents(each.target)
  end.collapse(false)
  getSelection().removeAllRanges()
  getSelection().addRange(end)
}

function movable(piece) {
  const made = chip(piece)
  made.tabIndex = 0
  return made
}

function keep({ isDone = editing.isDone } = {}) {
  const each = editing
  const pieces = joined(piecesOf(each.target))
  const isOther = JSON.stringify(pieces) !== JSON.stringify(each.pieces)
  if (isOther) Object.assign(each, { pieces, isEdited: JSON.stringify(pieces) !== JSON.stringify(each.text.target ?? []) })
  each.isDone = isDone
  leave()
  remember()
}

function leave() {
  const each = editing
  editing = null
  each.target.removeAttribute('contenteditable')
  show(each)
}

function setDone(each, isDone) {
  each.isDone = isDone
  show(each)
  remember()
}

function go(from, step) {
  let index = rows.indexOf(from) + step
  while (rows[index]?.item.hidden) index += step
  rows[index]?.item.focus()
  return rows[index]
}

function moveTag(each, piece, step) {
  const pieces = moved(joined(piecesOf(each.target)), piece, step)
  each.target.replaceChildren(...pieces.map((other) => (isTag(other) ? movable(other) : other)))
  ;[...each.target.children].find((other) => other.piece === piece)?.focus()
}

function keyWhileEditing(event) {
  const each = editing
  const piece = event.target.piece
  if (piece && (event.key === 'ArrowLeft' || event.key === 'ArrowRight')) {
    const isLeftToRight = getComputedStyle(each.target).direction === 'ltr'
    moveTag(each, piece, (event.key === 'ArrowRight') === isLeftToRight ? 1 : -1)
  } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    keep({ isDone: true })
    go(each, 1) ?? each.item.focus()
  } else if (event.key === 'Enter') {
    keep()
    each.item.focus()
  } else if (event.key === 'Escape') {
    leave()
    each.item.focus()
  } else return
  event.preventDefault()
}

list.addEventListener('keydown', (event) => {
  if (event.isComposing) return
  const each = event.target.closest('#texts > li')?.row
  if (editing) return keyWhileEditing(event)
  if (!each || event.altKey || event.target === each.done && event.key !== 'ArrowUp' && event.key !== 'ArrowDown') return
  if (event.key === 'ArrowDown') go(each, 1)
  else if (event.key === 'ArrowUp') go(each, -1)
  else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    setDone(each, true)
    go(each, 1)
  } else if (event.key === 'Enter') edit(each)
  else if (event.key === 'd' && !event.ctrlKey && !event.metaKey) setDone(each, !each.isDone)
  else return
  event.preventDefault()
})
list.addEventListener('beforeinput', (event) => {
  if (!editing || event.isComposing) return
  const isOther = ['insertParagraph', 'insertLineBreak', 'deleteByDrag', 'insertFromDrop'].includes(event.inputType)
  const isTouching = touchesTag(editing.target, event)
  if (isOther || isTouching) event.preventDefault()
  say(isTouching ? 'Tags stay: change the words beside them, or move a tag (Tab, then left or right).' : '')
})
list.addEventListener('paste', (event) => {
  if (!editing) return
  event.preventDefault()
  document.execCommand('insertText', false, oneLine(event.clipboardData.getData('text/plain')))
})
list.addEventListener('click', (event) => {
  const each = event.target.closest('#texts > li')?.row
  if (!each) return
  if (event.target === each.done) setDone(each, each.done.checked)
  else if (each.target.contains(event.target) && !getSelection().toString()) edit(each)
  if (event.target.piece && editing === each) {
    ;[...each.target.children].find((other) => other.piece === event.target.piece)?.focus()
  }
})
list.addEventListener('focusout', (event) => {
  if (editing && event.relatedTarget && !editing.item.contains(event.relatedTarget)) keep()
})
document.addEventListener('keydown', (event) => {
  if (event.target !== document.body || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return
  const first = rows.find((each) => !each.item.hidden)
  first?.item.focus()
  if (first) event.preventDefault()
})
form.addEventListener('submit', (event) => event.preventDefault())
form.addEventListener('input', filter)
document.getElementById('save').addEventListener('click', () => {
  if (editing) keep()
  const asked = rows.filter((each) => each.text.state !== 'not-wanted')
  const texts = chosen().map((each) => ({ text: each.text, target: each.pieces, beside: beside(each, asked) }))
  download(`${data.name}.${data.src}-${data.tgt}.tmx`, tmx(data, texts))
})

recall()
list.append(...rows.map((each) => each.item))
filter()
document.documentElement.dataset.ready = 'true'
