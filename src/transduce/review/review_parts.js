// What a text of the page is made of: words, tags, notes. Text is set as text, never as markup.

const UNSURE = 0.1 // words that are less probable are marked
const UNSURE_TEXT = 0.45 // texts whose words are less probable on average (geometric mean)

const WARNINGS = {
  'source-cut': 'the source is too long; its end was not translated',
  'output-cut': 'the translation is too long; its end may be missing',
  untranslated: 'the model found no words',
  repeated: 'the model repeated words; what was too much is left out',
  lost: 'a number, URL, placeholder or tag is missing',
  mended: 'a number, URL, placeholder or tag was put in afterwards',
  guessed: 'the place of a tag is guessed',
  terms: 'a term is missing, or a phrase is there that was to be avoided',
  long: 'the sentence is longer than any that the model learned from',
  short: 'the translation is short; part of it may be missing',
  unlike: 'the source is unlike the text that the model learned from',
}
const STATES = {
  memory: 'from the memory',
  'not-wanted': 'not to be translated',
  'no-words': 'nothing to translate',
  equal: 'the translation is the same text',
  untranslated: 'not translated: the model found no words',
  placeholders: 'not taken: other placeholders than the text',
  tags: 'not taken: tags are missing',
  refused: 'not taken: the document cannot hold it',
}
const BAD_STATES = ['untranslated', 'placeholders', 'tags', 'refused']

function element(name, className, ...children) {
  const made = document.createElement(name)
  if (className) made.className = className
  made.append(...children)
  return made
}

const isTag = (piece) => typeof piece !== 'string'
const plainText = (pieces) => pieces.filter((piece) => !isTag(piece)).join('')

function chip(piece) {
  const [kind, number, text] = piece
  const made = element('span', 'chip', text)
  made.dir = 'ltr'
  made.title = text
  made.contentEditable = 'false'
  made.setAttribute('role', 'img')
  made.setAttribute('aria-label', `tag ${number} ${kind === 'close' ? 'ends' : kind === 'open' ? 'begins' : ''}: ${text}`)
  made.piece = piece
  return made
}

// The places of words in a string that is found piece by piece: each from where the one before it ended.
function placesOf(words, pieces) {
  const whole = plainText(pieces)
  let position = 0
  return words.flatMap(([word, logProb]) => {
    const start = whole.indexOf(word, position)
    if (start < 0) return []
    position = start + word.length
    return [{ start, end: position, probability: Math.exp(logProb) }]
  })
}

function shownPieces(pieces, words = []) {
  const unsure = placesOf(words, pieces).filter((place) => place.probability < UNSURE)
  const nodes = []
  let offset = 0
  for (const piece of pieces) {
    if (isTag(piece)) {
      nodes.push(chip(piece))
      continue
    }
    let cursor = 0
    for (const { start, end, probability } of unsure) {
      if (start < offset || end > offset + piece.length) continue
      const mark = element('mark', 'unsure', piece.slice(start - offset, end - offset))
      mark.title = `model probability ${percent(probability)}`
      nodes.push(piece.slice(cursor, start - offset), mark)
      cursor = end - offset
    }
    nodes.push(piece.slice(cursor))
    offset += piece.length
  }
  return nodes
}

const percent = (share) => (share < 0.01 ? 'below 1 %' : `${Math.round(100 * share)} %`)

function meanProbability(words = []) {
  return words.length ? Math.exp(words.reduce((sum, [, logProb]) => sum + logProb, 0) / words.length) : null
}

function isUnsure(text) {
  const mean = meanProbability(text.words)
  return mean !== null && mean < UNSURE_TEXT
}

function hasWarning(text) {
  return Boolean(text.warnings || BAD_STATES.includes(text.state) || text.terms?.some(([, , isKept]) => !isKept))
}

function notesOf(text) {
  const notes = []
  const isToldBelow = (warning) => warning === 'terms' && text.terms?.some(([, , isKept]) => !isKept)
  for (const warning of (text.warnings ?? []).filter((each) => !isToldBelow(each))) notes.push(element('li', 'warning', WARNINGS[warning] ?? warning))
  if (BAD_STATES.includes(text.state)) {
    const detail = text.detail ? `: ${text.detail}` : ''
    notes.push(element('li', 'warning', (STATES[text.state] ?? text.state) + detail))
  }
  for (const [source, target, isKept] of text.terms ?? []) {
    const term = source ? `${source} → ${target}` : target
    const what = isKept ? 'term: ' : source ? 'term that is missing: ' : 'to be avoided: '
    notes.push(element('li', isKept ? 'kept' : 'lost', what + term))
  }
  for (const [source, target, share] of text.similar ?? []) {
    notes.push(element('li', '', element('span', 'percent', `memory, ${share} %: `), `${source} → ${target}`))
  }
  return notes
}
