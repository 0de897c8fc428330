// Editing of a translation whose tags stay, and what becomes of the edits.

const XML = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
// eslint-disable-next-line no-control-regex -- what XML cannot have
const NO_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

const xml = (text) => text.replace(NO_XML, '').replace(/[&<>"]/g, (sign) => XML[sign])

function piecesOf(cell) {
  const pieces = []
  for (const node of cell.childNodes) {
    if (node.piece) pieces.push(node.piece)
    else if (node.textContent && !isTag(pieces.at(-1) ?? [])) pieces[pieces.length - 1] += oneLine(node.textContent)
    else if (node.textContent) pieces.push(oneLine(node.textContent))
  }
  return pieces
}

const oneLine = (text) => text.replace(/[\r\n]+/g, ' ')

// Whether an input would change more than words.
function touchesTag(cell, event) {
  const chips = [...cell.querySelectorAll('.chip')]
  return event.getTargetRanges().some(({ startContainer, startOffset, endContainer, endOffset }) => {
    const range = document.createRange()
    range.setStart(startContainer, startOffset)
    range.setEnd(endContainer, endOffset)
    return chips.some((each) => !range.collapsed && range.intersectsNode(each) && !touchesOnlyAtEdge(range, each))
  })
}

function touchesOnlyAtEdge(range, node) {
  const whole = document.createRange()
  whole.selectNode(node)
  const endsBefore = range.compareBoundaryPoints(Range.START_TO_END, whole) // the end of range, the start of the node
  const startsAfter = range.compareBoundaryPoints(Range.END_TO_START, whole)
  return endsBefore <= 0 || startsAfter >= 0
}

// Moves a tag by a word, or over another tag; the two of a pair do not change places.
function moved(pieces, piece, step) {
  const result = [...pieces]
  const index = result.indexOf(piece)
  const beside = result[index + step]
  if (beside === undefined) return pieces
  if (isTag(beside)) {
    if (beside[1] === piece[1]) return pieces
    result.splice(index, 1)
    result.splice(index + step, 0, piece)
    return result
  }
  const isOpen = piece[0] === 'open'
  const word = beside.match(step > 0 ? (isOpen ? /^\s*\S+\s*/ : /^\s*\S+/) : isOpen ? /\S+\s*$/ : /\s*\S+\s*$/)?.[0] ?? beside
  const rest = step > 0 ? beside.slice(word.length) : beside.slice(0, beside.length - word.length)
  result.splice(Math.min(index, index + step), 2, ...(step > 0 ? [word, piece, rest] : [rest, piece, word]))
  return joined(result)
}

function joined(pieces) {
  const result = []
  for (const piece of pieces) {
    if (!isTag(piece) && result.length && !isTag(result.at(-1))) result[result.length - 1] += piece
    else if (piece.length) result.push(piece)
  }
  return result
}

// The memory of what was edited or done, as TMX 1.4: tags are its inline codes, placeholders are words. ``prev`` and
// ``next``, as OmegaT has them, are the texts beside it in the document.
function tmx(data, texts) {
  const seg = (pieces, isPlain) => pieces.map((piece) => (!isTag(piece) ? xml(piece) : isPlain ? xml(piece[2]) : code(piece))).join('')
  const code = ([kind, number, text]) => {
    if (kind === 'single') return `<ph x="${number}">${xml(text)}</ph>`
    return kind === 'open' ? `<bpt i="${number}" x="${number}">${xml(text)}</bpt>` : `<ept i="${number}">${xml(text)}</ept>`
  }
  const tuv = (language, content) => `<tuv xml:lang="${xml(language)}"><seg>${content}</seg></tuv>`
  const prop = (type, text) => (text ? `<prop type="${type}">${xml(text)}</prop>` : '')
  const unit = ({ text, target, beside: [before, after] }) =>
    `<tu><note>${xml(text.place)}</note>${prop('prev', before)}${prop('next', after)}` +
    `${tuv(data.src, text.key ? xml(text.key) : seg(text.source ?? []))}${tuv(data.tgt, seg(target, text.key))}</tu>`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<tmx version="1.4">',
    '<header creationtool="transduce-review" creationtoolversion="1" segtype="paragraph" o-tmf="transduce" ' +
      `adminlang="en" srclang="${xml(data.src)}" datatype="unknown"/>`,
    '<body>',
    ...texts.map(unit),
    '</body>',
    '</tmx>',
    '',
  ].join('\n')
}

function download(name, content) {
  const link = element('a')
  link.href = URL.createObjectURL(new Blob([content], { type: 'application/x-tmx+xml' }))
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
