/** Keys in captions: "F# min", "B-flat major", "a-Moll", "fa dièse mineur", "G大调", "嬰ヘ短調", "key of D". */
import { isNegated } from "./negation.js";
import {
  type MentionedFacts,
  Phrases,
  skipHyphen,
  statementAt,
  type TokenIndex,
  type TokenText,
} from "./text.js";
import type { NoteNaming } from "./words.js";
import * as lexicon from "./words.js";

const MODES = new Phrases(lexicon.MODES.flatMap((mode) => mode.words.map((word) => [word, mode] as const)));
const ACCIDENTALS = new Phrases([
  ...lexicon.SHARPS_AFTER_NOTE.map((word) => [word, "#"] as const),
  ...lexicon.FLATS_AFTER_NOTE.map((word) => [word, "b"] as const),
]);
const ACCIDENTALS_BEFORE = new Phrases([
  ...lexicon.SHARPS_BEFORE_NOTE.map((word) => [word, "#"] as const),
  ...lexicon.FLATS_BEFORE_NOTE.map((word) => [word, "b"] as const),
]);
/** Key in one word: "Am", "Bbmin", "Ebmaj". */
const GLUED_KEY = /^([A-Ga-g])(b?)(m|M|[Mm]in|[Mm]inor|[Mm]aj|[Mm]ajor)$/;
const GLUED_MODE = /^(?:m|M|[Mm]in|[Mm]inor|[Mm]aj|[Mm]ajor)$/;
const CHORD = /^[A-G](?:b|bm|m|maj|min|sus|dim|aug)?$/;
/** Note names that are also ordinary words. */
const AMBIGUOUS_NOTES = new Set(["a", "la", "do", "si", "mi"]);
/** The word "and" in languages that name notes by syllables, as in "maggiore e minore". */
const AND = "e";
const CONNECTORS = Phrases.of(
  "and with at for by or featuring mit und bei avec et à a con y e com at around | - – #".split(" "),
);

interface Note {
  note: string;
  namings: readonly NoteNaming[];
  end: number;
}

/** Parses a key. @returns index of the token after the key, or null if there is no key */
export function readKey(text: TokenText, start: TokenIndex, found: MentionedFacts): TokenIndex | null {
  const label = lexicon.KEY_LABELS.at(text, start);
  const noteStart = label === null ? start : label.end;
  const key = keyAt(text, noteStart, label !== null || isLabelled(text, start));
  if (key === null) return null;
  if (lexicon.WORDS_AFTER_FALSE_KEY.at(text, skipHyphen(text, key.end)) !== null) return null;
  if (lexicon.WORDS_BEFORE_OTHER_LETTER.before(text, noteStart) !== null) return null;
  if (!isNegated(text, start)) {
    found.keys.push(statementAt(text, noteStart, key.end, key.keyScale));
    text.keyStarts.add(start).add(noteStart);
    text.keyEnds.add(key.end);
  }
  return key.end;
}

function keyAt(
  text: TokenText,
  start: number,
  isLabelled: boolean,
): { keyScale: string; end: number } | null {
  const short = shortKeyAt(text, start, isLabelled);
  if (short !== null) return short;
  for (const { note, namings, end } of notesAt(text, start)) {
    const scale = lexicon.SCALE_WORDS.at(text, end)?.end ?? end;
    const mode = MODES.at(text, skipHyphen(text, scale));
    if (mode === null || !mode.value.namings.some((naming) => namings.includes(naming))) continue;
    const isClear =
      !isAmbiguous(text, start, end, mode.value) ||
      (isLabelled && standsBeforeClause(text, mode.end)) ||
      standsAsItem(text, start, mode.end);
    if (isClear) return { keyScale: `${note} ${mode.value.mode}`, end: mode.end };
  }
  return majorKeyAt(text, start, isLabelled);
}

/** Parses a short key, such as "Am", "F#m" or "Bbmin". Returns null for a chord of a progression. */
function shortKeyAt(
  text: TokenText,
  start: number,
  isLabelled: boolean,
): { keyScale: string; end: number } | null {
  const raw = text.tokens[start]?.raw ?? "";
  let [, letter = "", accidental = "", mode = ""] = GLUED_KEY.exec(raw) ?? [];
  let end = start + 1;
  if (letter === "" && /^[A-Ga-g]$/.test(raw)) {
    const sign = /^[#♯♭]$/u.exec(text.tokens[end]?.raw ?? "")?.[0];
    const last = text.tokens[end + 1]?.raw ?? "";
    if (sign === undefined || !text.isGlued(end) || !text.isGlued(end + 1) || !GLUED_MODE.test(last))
      return null;
    [letter, accidental, mode, end] = [raw, sign === "♭" ? "b" : "#", last, end + 2];
  }
  if (letter === "" || (mode.toLowerCase() === "m" && accidental === "" && !/^[A-G]$/.test(letter)))
    return null;
  // A single-letter mode may have another meaning: "mm" (millimetres), "I'm", "GM".
  const isOneLetter = mode.length === 1;
  if (isOneLetter && accidental === "" && mode === "M") return null;
  const isChord = text.isGlued(end) && text.tokens[end]?.kind === "number";
  if (isOneLetter && (isInProgression(text, start, end) || isChord)) return null;
  if (text.isGlued(start) && (text.isWord(start - 1) || text.tokens[start - 1]?.kind === "number"))
    return null;
  // Words that look like keys: "Am Meer", "Em Lisboa".
  const isWord =
    isOneLetter && accidental === "" && (letter === "A" || (letter === "E" && text.beginsClause(start)));
  if (
    isWord &&
    !isLabelled &&
    !(text.beginsClause(start) && text.endsClause(end)) &&
    !isBesideNumber(text, start, end)
  )
    return null;
  const isMinor = mode === "m" || /^min/i.test(mode);
  return { keyScale: `${letter.toUpperCase()}${accidental} ${isMinor ? "minor" : "major"}`, end };
}

function isBesideNumber(text: TokenText, start: number, end: number): boolean {
  return (
    text.tokens[start - 1]?.kind === "number" ||
    lexicon.TEMPO_UNITS.before(text, start) !== null ||
    text.tokens[end]?.kind === "number"
  );
}

function isInProgression(text: TokenText, start: number, end: number): boolean {
  const isChord = (at: number) => CHORD.test(text.tokens[at]?.raw ?? "");
  const isLink = (at: number) => /^[-–>→/|,]$/u.test(text.tokens[at]?.text ?? "");
  return (
    isChord(end) ||
    (isLink(end) && isChord(end + 1)) ||
    isChord(start - 1) ||
    (isLink(start - 1) && isChord(start - 2))
  );
}

/** All notes that a token may mean: "b" is B, or B flat in German. */
function notesAt(text: TokenText, start: number): Note[] {
  const before = ACCIDENTALS_BEFORE.at(text, start);
  const at = before?.end ?? start;
  const token = text.tokens[at];
  if (
    token === undefined ||
    (text.isGlued(at) && at === start && text.isWord(at - 1) && /\p{Script=Latin}/u.test(token.text))
  )
    return [];
  const notes: Note[] = [];
  const [, letter, glued] = /^([a-g])(b|flat|sharp|)$/.exec(token.text) ?? [];
  if (letter !== undefined) {
    const [sign, end] = glued === "" ? accidentalAt(text, at + 1) : [glued === "sharp" ? "#" : "b", at + 1];
    const accidental = before?.value ?? sign;
    const namings: NoteNaming[] = accidental === "" ? ["letter"] : ["letter", "german"];
    notes.push({ note: `${letter.toUpperCase()}${accidental}`, namings, end });
  }
  const named = Object.hasOwn(lexicon.NOTE_NAMES, token.text) ? lexicon.NOTE_NAMES[token.text] : undefined;
  if (named !== undefined) {
    const [sign, end] = named.naming === "german" ? ["", at + 1] : accidentalAt(text, at + 1);
    const accidental = before?.value ?? sign;
    notes.push({ note: `${named.note}${accidental}`, namings: [named.naming], end });
  }
  return notes.filter(({ note }) => note.length <= 2);
}

function accidentalAt(text: TokenText, at: number): [accidental: string, end: number] {
  const found =
    ACCIDENTALS.at(text, at) ?? (text.tokens[at]?.text === "-" ? ACCIDENTALS.at(text, at + 1) : null);
  return found === null ? ["", at] : [found.value, found.end];
}

/**
 * Whether the note may be an ordinary word, like the "a" of "a major hit". Applies to one-word notes before a mode in
 * Latin or Cyrillic script.
 */
function isAmbiguous(text: TokenText, start: number, end: number, mode: lexicon.ModeWords): boolean {
  const note = text.tokens[start]?.text ?? "";
  if (end !== start + 1 || !/\p{Script=Latin}|\p{Script=Cyrillic}/u.test(mode.words[0] ?? "")) return false;
  return AMBIGUOUS_NOTES.has(note) || (note === AND && mode.namings.includes("syllable"));
}

function standsBeforeClause(text: TokenText, end: number): boolean {
  return text.endsClause(end) || CONNECTORS.at(text, end) !== null || text.tokens[end]?.kind === "number";
}

/**
 * Whether the words are a whole clause or list item, or are capitalised within a clause. After capitalised words, no
 * noun such as "key" may follow.
 */
function standsAsItem(text: TokenText, start: number, end: number): boolean {
  if (text.beginsClause(start)) return text.endsClause(end);
  return (
    /^\p{Lu}/u.test(text.tokens[start]?.raw ?? "") &&
    !/^(?:key|tonality|mode|mood|feel)$/.test(text.tokens[end]?.text ?? "")
  );
}

const IN_WORDS = Phrases.of(["in", "in the key of", "key of", "key", "en", "em", "key :", "to"]);

function isLabelled(text: TokenText, start: number): boolean {
  return IN_WORDS.before(text, start) !== null;
}

/** Parses a note without a mode, which means major: "key of D", "in Bb", "in C.", "en si bémol". */
function majorKeyAt(
  text: TokenText,
  start: number,
  isLabelled: boolean,
): { keyScale: string; end: number } | null {
  const [first] = notesAt(text, start);
  if (lexicon.TUNING_WORDS.before(text, start) !== null || isOfInstrument(text, start)) return null;
  if (!isLabelled || first === undefined || isInProgression(text, start, first.end)) return null;
  const hasAccidental = first.note.length > 1;
  const isLetter = first.namings.includes("letter") && /^[A-G]/.test(text.tokens[start]?.raw ?? "");
  if (!isLetter && !(hasAccidental && first.namings.includes("syllable"))) return null;
  // Letters of abbreviations are not keys: "E.T.", "D.C."
  if (text.tokens[first.end]?.text === "." && text.isGlued(first.end + 1) && text.isWord(first.end + 1))
    return null;
  const isNamed = lexicon.KEY_LABELS.before(text, start) !== null;
  const isClear =
    text.endsClause(first.end) || (standsBeforeClause(text, first.end) && (isNamed || hasAccidental));
  return isClear || (isNamed && hasAccidental) ? { keyScale: `${first.note} major`, end: first.end } : null;
}

/** Whether the note is the key of an instrument: "clarinet in A". */
function isOfInstrument(text: TokenText, start: number): boolean {
  const label = IN_WORDS.before(text, start);
  return label !== null && lexicon.TRANSPOSING_INSTRUMENTS.before(text, label.start) !== null;
}
