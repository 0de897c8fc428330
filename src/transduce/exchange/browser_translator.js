// A translator of transduce in a browser, or in Node: the engine in C as WebAssembly, and the text around it.
//
//   const translator = await Translator.load('./');
//   translator.translate('A dog runs.');

const N_SPECIAL = 4, EOS = 2; // ids of all vocabularies
const MAX_UNIT = 8; // tokens of the longest unit whose repetition counts as a loop
const FIRST_WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu; // of old tokenizers
const BOUNDARIES = [/[!?;:·]\s+|[。！？；]|\s[–—-]\s+/g, /[,)\]]\s+|[，、]/g, /\s+/g]; // of clauses, the best first
const LINE_ENDS = /([\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+)/;
const FIRST_MASK = 0xe000, N_MASKS = 10, MASKS = /[\ue000-\ue009]/g; // tokens that stand for strings which are copied
const END_MARKS = /[\s.!?…。！？]*$/;
const APOSTROPHES = "'’‘‛ʼ＇‚", QUOTES = '"“”„‟＂〝〞';
const OPENS = new RegExp(`(?<![^\\s([{<–—/${APOSTROPHES}${QUOTES}-])[${QUOTES}](?![\\s.,;:!?)\\]}]|$)`, 'g');

// The byte-level alphabet: a printable character for each byte.
const CHARACTERS = [];
for (let byte = 0, n = 0x100; byte < 256; byte++) {
  const isPrintable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  CHARACTERS.push(String.fromCharCode(isPrintable ? byte : n++));
}
const BYTES = new Map(CHARACTERS.map((character, byte) => [character, byte]));

export class Tokenizer {
  // `description`: the values of a tokenizer.json.
  constructor({ model, pre_tokenizer }) {
    this.vocabulary = new Map(Object.entries(model.vocab));
    this.tokens = [];
    for (const [token, id] of this.vocabulary) this.tokens[id] = token;
    this.ranks = model.merges && new Map(model.merges.map((pair, rank) => [[pair].flat().join(' '), rank]));
    this.inside = model.continuing_subword_prefix ?? ''; // before a piece inside a word
    this.steps = (pre_tokenizer.pretokenizers ?? [pre_tokenizer]).map(
      (step) => step.pattern ? new RegExp(step.pattern.Regex, 'gu') : step.use_regex ? FIRST_WORDS : null);
    this.known = new Map();
  }

  // The ids of a normalised text, without EOS.
  encode(text) {
    if (!text) return [];
    let words = [` ${text}`];
    for (const pattern of this.steps) {
      if (pattern) words = words.flatMap((word) => word.match(pattern));
      if (!pattern || pattern === FIRST_WORDS) words = words.map(toByteLevel);
    }
    return words.flatMap((word) => {
      if (!this.known.has(word)) this.known.set(word, this.ranks ? this.merged(word) : this.longest(word));
      return this.known.get(word);
    });
  }

  // The ids of a word by merges: the one of the lowest rank first.
  merged(word) {
    const parts = [...word];
    for (;;) {
      let best = Infinity, at = 0;
      for (let i = 0; i + 1 < parts.length; i++) {
        const rank = this.ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (best === Infinity) return parts.map((part) => this.vocabulary.get(part));
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  }

  // The ids of a word from left to right, each the longest piece there is.
  longest(word) {
    const ids = [];
    for (let start = 0, end; start < word.length; start = end) {
      const prefix = start ? this.inside : '';
      for (end = word.length; !this.vocabulary.has(prefix + word.slice(start, end)); ) end--;
      ids.push(this.vocabulary.get(prefix + word.slice(start, end)));
    }
    return ids;
  }

  decode(ids) {
    const pieces = ids.filter((id) => id >= N_SPECIAL).map((id) => this.tokens[id]);
    const characters = pieces.map((piece) => this.inside && piece.startsWith(this.inside) ? piece.slice(this.inside.length) : piece);
    const bytes = [...characters.join('')].flatMap((each) => BYTES.get(each) ?? [...new TextEncoder().encode(each)]);
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(bytes));
    return text.replace(/^ /, '').replaceAll('\ufffd', ''); // bytes that are no character
  }
}

function toByteLevel(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => CHARACTERS[byte]).join('');
}

// How often a unit of so many tokens follows itself in a text.
function repeats(ids, unit) {
  let longest = 0, run = 0;
  for (let i = unit; i < ids.length; i++) longest = Math.max(longest, run = ids[i] === ids[i - unit] ? run + 1 : 0);
  return Math.floor(longest / unit) + 1;
}

// Loops of a translation: the same words, parts of one, or signs side by side more often than its source has them.
class Loops {
  // `spaceless`: the range of letters that are words by themselves.
  constructor(spaceless) {
    this.isSign = new RegExp(`^[${spaceless}]$`, 'u');
    this.word = new RegExp(`[${spaceless}]|(?:(?![${spaceless}])[\\p{L}\\p{N}])+`, 'gu');
  }

  isRepetitive(source, target) {
    const [from, to] = [source, target].map((text) => text.toLowerCase().match(this.word) ?? []);
    const n = this.repeats(to), most = Math.max(Math.min(2, from.length), this.repeats(from));
    const signs = (text) => Math.max(3, ...(text.match(/([^\p{L}\p{N}_\s])\1+/gu) ?? []).map((run) => [...run].length));
    return (n > 1 && n > most) || (to.some(hasLoop) && !from.some(hasLoop)) || signs(target) > signs(source);
  }

  // How often the same words stand side by side; of one word, once less.
  repeats(words) {
    let n = 1, run = 0;
    for (const [i, word] of words.entries()) {
      run = word === words[i - 1] ? run + 1 : 1;
      n = Math.max(n, this.isSign.test(word) ? Math.floor(run / 2) : run - 1);
    }
    for (let unit = 2; unit <= Math.min(MAX_UNIT, words.length / 2); unit++) n = Math.max(n, repeats(words, unit));
    return n;
  }
}

function hasLoop(word) {
  return word.length > 5 && 2 * new Set(word).size <= word.length && /(\p{L}{2,8}?)\1{3,}|(\p{L})\2{5,}/iu.test(word);
}

// Strings that are copied, such as URLs, tags and dates: the model reads and writes masks in their place.
class Masks {
  constructor({ strings, unspaced, unmasked }) {
    [this.strings, this.unspaced] = [strings, unspaced].map((pattern) => new RegExp(pattern, 'gu'));
    this.unmasked = new Set(unmasked);
  }

  // A text with masks, and the string of each; equal strings share one.
  masked(text) {
    const originals = {}, parts = [];
    let position = 0;
    for (const { index, 0: { length } } of text.replace(this.unspaced, (run) => '\ufdd0'.repeat(run.length)).matchAll(this.strings)) {
      const string = text.slice(index, index + length);
      const used = Object.keys(originals), shared = used.find((mask) => originals[mask] === string);
      if (this.unmasked.has(string) || (!shared && used.length === N_MASKS)) continue;
      const known = shared ?? String.fromCharCode(FIRST_MASK + used.length);
      originals[known] = string;
      parts.push(text.slice(position, index), known);
      position = index + length;
    }
    return { text: parts.join('') + text.slice(position), originals };
  }

  // The output of a masked text, with the strings; whether each mask was there as often as in the source.
  restored(output, { text, originals }) {
    const left = text.match(MASKS) ?? [];
    let written = output.replace(MASKS, (mask) => {
      const at = left.indexOf(mask);
      if (at < 0) return '';
      left.splice(at, 1);
      return mask;
    });
    const isComplete = !left.length && written === output;
    for (const mask of left) written = inserted(written, mask, text.indexOf(mask) / text.length);
    return { text: written.replace(MASKS, (mask) => originals[mask]), isComplete };
  }
}

// Whether a sentence is in capitals: several words, and hardly a letter that is not upper-case.
export function isAllCaps(text) {
  if (text.toUpperCase() !== text || text.toLowerCase() === text) return false;
  const letters = text.match(/\p{L}/gu), n_upper = (word) => (word.match(/\p{Lu}/gu) ?? []).length;
  if (n_upper(text) < 0.9 * letters.length) return false;
  const words = text.match(/[\p{L}\p{N}]+(?:-[\p{L}\p{N}]+)*/gu).filter((word) => n_upper(word) > 1);
  return words.length > 1 && words.join('').length > 5;
}

// The same in small letters, but for the first one and the English "I".
export function toSentenceCase(text, language) {
  const lowered = text.toLocaleLowerCase(language);
  const words = /^en\b/.test(language) ? lowered.replace(/(?<![\p{L}\p{N}_])i(?![\p{L}\p{N}_])/gu, 'I') : lowered;
  return words.replace(/\p{L}/u, (first) => first.toLocaleUpperCase(language));
}

const noMasks = { restored: (text) => ({ text: text.replace(MASKS, ''), isComplete: true }) };

// A text with a word more, at the border of words nearest to a fraction of its length.
function inserted(text, word, fraction) {
  const end = text.search(END_MARKS), borders = [0, ...[...text.matchAll(/\s/g)].map((space) => space.index), end];
  const at = borders.reduce((best, each) => Math.abs(each - fraction * text.length) < Math.abs(best - fraction * text.length) ? each : best);
  const [before, after] = [text.slice(0, at), text.slice(at)];
  return `${before}${/\S$/.test(before) ? ' ' : ''}${word}${at < end && /^\S/.test(after) ? ' ' : ''}${after}`;
}

export class Translator {
  // `read(name)` gives a Response, or what is like one; `onBytes` hears how many bytes of the model have come, and of how many.
  static async load(folder, { read = (name) => fetch(folder + name), onBytes = () => {} } = {}) {
    const found = async (name) => {
      const response = await read(name);
      if (!response.ok) throw new Error(`${name} is missing beside the page (${response.status})`);
      return response;
    };
    const [settings, engine, weights] = await Promise.all(['model.json', 'engine.wasm', 'model.bin'].map(found));
    const translator = new Translator(await settings.json(), await started(await engine.arrayBuffer()));
    await translator.readModel(weights.body, onBytes);
    return translator;
  }

  constructor(settings, engine) {
    this.settings = settings;
    this.engine = engine;
    const [source, target] = settings.tokenizers.map((each) => new Tokenizer(each));
    [this.source, this.target] = [source, target ?? source];
    this.patterns = settings.invisible.map((pattern) => new RegExp(pattern, 'gu'));
    this.masks = settings.masks && new Masks(settings.masks);
    this.loops = new Loops(settings.spaceless);
    this.abbreviations = new Set(settings.abbreviations);
    this.segmenter = new Intl.Segmenter(settings.source, { granularity: 'sentence' });
    this.suppressed = this.room(settings.suppressed.length);
    this.write(this.suppressed, settings.suppressed);
  }

  async readModel(stream, onBytes) {
    const { bytes, file_bytes: expected } = this.settings;
    const at = this.engine.malloc(bytes) >>> 0;
    if (!at) throw new Error(`there is no memory for a model of ${bytes} bytes`);
    let n = 0, compressed = 0;
    const counted = new TransformStream({
      transform(chunk, to) { onBytes(compressed += chunk.length, expected); to.enqueue(chunk); },
    });
    const reader = stream.pipeThrough(counted).pipeThrough(new DecompressionStream('gzip')).getReader();
    try {
      for (let part; !(part = await reader.read()).done; n += part.value.length) {
        if (n + part.value.length > bytes) throw new Error('too long');
        new Uint8Array(this.engine.memory.buffer, at + n).set(part.value);
      }
      if (n < bytes) throw new Error('too short');
    } catch (error) {
      throw new Error(`model.bin is damaged: ${compressed} of ${expected} bytes came (${error.message}); load the page again`);
    }
    this.model = this.engine.read(at, bytes);
    if (!this.model) throw new Error(`model.bin: ${this.fault()}; load the page again`);
  }

  // A text, its lines and spaces kept. `onPart` hears each sentence, then what stands between: (text, number of tokens).
  async translate(text, { greedy = false, onPart = () => {} } = {}) {
    const parts = [];
    const add = async (part, n = 0) => { parts.push(part); await onPart(part, n); };
    for (const line of text.split(LINE_ENDS)) {
      for (const { sentence, space } of this.sentences(line)) {
        const { ids, text } = /\p{L}/u.test(sentence) ? this.translated(sentence, greedy) : { ids: [], text: '' };
        await add(/[\p{L}\p{N}]/u.test(text) ? text : sentence, ids.length && ids.length + 1);
        if (space) await add(space);
      }
    }
    return parts.join('');
  }

  // Sentences with the space behind each. A line stays whole if lines like it are in the training text.
  sentences(line) {
    const start = line.match(/^\s*/)[0], whole = line.slice(start.length), parts = [];
    let pending = '';
    for (const { segment } of this.segmenter.segment(whole)) {
      pending += segment;
      const word = segment.match(/(?<![\p{L}\p{N}_.])(\p{L}[\p{L}\p{N}_.-]*)\.\s*$/u);
      if (word && this.abbreviations.has(word[1].toLowerCase())) continue;
      parts.push(pending);
      pending = '';
    }
    if (pending) parts.push(pending);
    const { sentences, tokens, longest } = this.settings.lines;
    const isWhole = parts.length <= sentences && this.length(whole) <= tokens;
    const divided = (isWhole ? [whole] : parts).flatMap((part) => this.length(part) > longest ? this.clauses(part, tokens) : [part]);
    return [
      ...(start ? [{ sentence: '', space: start }] : []),
      ...divided.map((part) => ({ sentence: part.trim(), space: part.match(/\s*$/)[0] })),
    ];
  }

  // Parts of a sentence of at most so many tokens, divided near the middle at the best kind of boundary there.
  clauses(sentence, limit) {
    for (const boundary of this.length(sentence) > limit ? BOUNDARIES : []) {
      const ends = [...sentence.matchAll(boundary)].map((match) => match.index + match[0].length);
      const [end] = ends.filter((each) => Math.abs(each / sentence.length - 0.5) < 0.3).sort(
        (one, other) => Math.abs(one - sentence.length / 2) - Math.abs(other - sentence.length / 2));
      if (end) return [sentence.slice(0, end), sentence.slice(end)].flatMap((part) => this.clauses(part, limit));
    }
    return [sentence];
  }

  // Tokens, EOS included.
  length(sentence) {
    return this.source.encode(this.normalised(this.quoted(sentence))).length + 1;
  }

  // The ids that the model reads, EOS at the end.
  encode(sentence) {
    return [...this.source.encode(this.normalised(this.quoted(sentence))).slice(0, this.settings.max_source - 1), EOS];
  }

  decode(ids) {
    return this.normalised(this.target.decode(ids));
  }

  // As the training text was: NFC, no invisible characters, single spaces.
  normalised(text) {
    const visible = this.patterns.reduce((each, pattern) => each.replace(pattern, ''), text.replace(/\p{Surrogate}/gu, '\ufffd'));
    return visible.normalize('NFC').replace(/[\s\x1c-\x1f\x85]+/g, ' ').trim();
  }

  // With the apostrophes and quotation marks of the training text.
  quoted(text) {
    const [apostrophe, opening, closing] = this.settings.quotes;
    const closed = new RegExp(`[${QUOTES}]`, 'g');
    const marked = opening === closing ? text : text.replace(OPENS, '\ufdd0');
    return marked.replace(closed, closing).replaceAll('\ufdd0', opening).replace(new RegExp(`[${APOSTROPHES}]`, 'g'), apostrophe);
  }

  // The best output of a sentence, {ids, text}: of the beam if the best one loops, else of a search that writes no loops.
  translated(sentence, greedy) {
    const masked = this.masks?.masked(sentence) ?? { text: sentence, originals: {} };
    const { lowers_caps, source: from, target: to } = this.settings, isCaps = lowers_caps && isAllCaps(masked.text);
    const source = this.encode(isCaps ? toSentenceCase(masked.text, from) : masked.text), beam = greedy ? 1 : this.settings.search.beam_size;
    const limits = Array.from({ length: MAX_UNIT }, (_, i) => Math.max(i ? 2 : 3, repeats(source.slice(0, -1), i + 1)));
    const written = (ids) => {
      const text = isCaps ? this.decode(ids).toLocaleUpperCase(to) : this.decode(ids);
      return { ids, ...(this.masks ?? noMasks).restored(text, masked) };
    };
    const isGood = ({ text, isComplete }) => isComplete && !this.loops.isRepetitive(sentence, text);
    let best;
    for (const [n_best, allowed] of [[1, null], [beam, null], [beam, limits]]) {
      const found = this.hypotheses(source, { greedy, n_best, limits: allowed }).map(written);
      best = found.find(isGood) ?? found[0];
      if (isGood(best)) break;
    }
    return best;
  }

  // The ids of the n best outputs of a source, EOS left out. `limits`: how often 1, 2, ... ids may follow each other.
  hypotheses(source, { greedy = false, n_best = 1, limits = null } = {}) {
    const { search, suppressed, max_output } = this.settings;
    const max_length = Math.min(source.length + search.max_extra_tokens, search.max_length ?? Infinity, max_output);
    const given = [...source, ...(limits ?? []), ...Array(n_best).fill(-1)], room = this.room(given.length + n_best * max_length);
    this.write(room, given);
    const repeated = room + 4 * source.length, lengths = room + 4 * (given.length - n_best), ids = room + 4 * given.length;
    const status = this.engine.search(
      this.model, room, source.length, max_length, greedy ? 1 : search.beam_size, n_best, search.alpha, search.min_length,
      search.no_repeat_ngram ?? 0, this.suppressed, suppressed.length, limits ? repeated : 0, limits ? limits.length : 0, ids, lengths);
    const found = [...new Int32Array(this.engine.memory.buffer, lengths, n_best)].map(
      (n, row) => n < 0 ? null : [...new Int32Array(this.engine.memory.buffer, ids + 4 * row * max_length, n)]);
    this.engine.free(room);
    if (status) throw new Error(this.fault());
    return found.filter(Boolean);
  }

  room(n) {
    const at = this.engine.malloc(4 * n + 4) >>> 0;
    if (!at) throw new Error('there is no memory for this text');
    return at;
  }

  write(at, numbers) {
    new Int32Array(this.engine.memory.buffer, at, numbers.length).set(numbers);
  }

  fault() {
    const bytes = new Uint8Array(this.engine.memory.buffer, this.engine.error());
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }
}

// The engine's functions. Of a system it asks for the variables of the environment only; there are none.
async function started(bytes) {
  let memory;
  const environ_sizes_get = (...counts) => {
    for (const at of counts) new DataView(memory.buffer).setUint32(at, 0, true);
    return 0;
  };
  const system = { environ_get: () => 0, environ_sizes_get, proc_exit: () => { throw new Error('the engine has stopped'); } };
  let instance;
  try {
    ({ instance } = await WebAssembly.instantiate(bytes, { wasi_snapshot_preview1: system }));
  } catch (error) {
    throw new Error(`this browser cannot run the engine, which needs WebAssembly with SIMD (${error.message})`);
  }
  ({ memory } = instance.exports);
  instance.exports._initialize();
  return instance.exports;
}
