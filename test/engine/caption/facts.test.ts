import { expect } from "chai";
import fc from "fast-check";
import { type CaptionFacts, readCaption } from "../../../src/engine/caption/facts.js";
import { canonicalKeyScale } from "../../../src/engine/metadata.js";
import { SENTENCES } from "./sentences.js";

const NOTHING: CaptionFacts = {
  tempo: null,
  usualTempo: null,
  keyScale: null,
  timeSignature: null,
  remarks: [],
};

const bpmOf = (caption: string) => {
  const { tempo } = readCaption(caption);
  return tempo && (tempo.value.min === tempo.value.max ? tempo.value.min : tempo.value);
};
const usualOf = (caption: string) => readCaption(caption).usualTempo?.value ?? null;
const keyOf = (caption: string) => readCaption(caption).keyScale?.value ?? null;
const metreOf = (caption: string) => readCaption(caption).timeSignature?.value ?? null;

/** Parses "statement = fact | statement = fact | ..." */
const pairs = (text: string) =>
  text.split(" | ").map((pair) => pair.split(" = ") as [statement: string, fact: string]);

/** Captions with numbers and words that state no tempo, key or time signature. */
const plain = fc
  .array(
    fc.constantFrom(
      ...[
        "warm piano",
        "80s synths",
        "808 bass",
        "4 on the floor",
        "from 1980",
        "440 Hz tuning",
        "7 strings",
        "a major hit",
      ],
      ...[
        "a minor setback",
        "two guitars",
        "24/7 energy",
        "take 5",
        "90's feel",
        "TR-909 hats",
        "the key to my heart",
        "in 2024",
      ],
      ...[
        "dreamy",
        "Klavier",
        "guitare",
        "chitarra",
        "吉他",
        "ピアノ",
        "피아노",
        "no. 40",
        "mp3",
        "100 % analog",
        "la mayor parte",
      ],
    ),
    { maxLength: 4 },
  )
  .map((parts) => parts.join(", "));
const around = (statement: fc.Arbitrary<string>) =>
  fc.tuple(plain, statement, plain).map((parts) => parts.filter(Boolean).join(", "));

describe("facts that are found in captions", () => {
  it("finds a tempo in any notation and position", () => {
    const forms = (
      '# bpm|#bpm|# BPM|BPM: #|bpm=#|tempo #|tempo: #|a tempo of #|# beats per minute|around # beats a minute|♩ = #|(# b.p.m.)|#ish bpm|#+ bpm|tempo should be #|[BPM: #]|"bpm": #|' +
      "# Schläge pro Minute|mit # Schlägen pro Minute|# ppm|# battements par minute|# pulsaciones por minuto|# battiti al minuto|# batidas por minuto|テンポ#|速度#|每分钟#拍|템포 #"
    ).split("|");
    const statement = fc.tuple(fc.integer({ min: 30, max: 300 }), fc.constantFrom(...forms));
    fc.assert(
      fc.property(plain, statement, plain, (before, [bpm, form], after) => {
        const caption = [before, form.replace("#", String(bpm)), after].filter(Boolean).join(", ");
        const { tempo } = readCaption(caption);
        expect(tempo?.value, caption).to.deep.equal({ min: bpm, max: bpm });
        expect(tempo?.words).to.include(String(bpm));
      }),
    );
  });

  it("uses a bare number as the tempo only if it can mean nothing else", () => {
    expect(bpmOf("house at 124 in G minor")).to.equal(124);
    expect(bpmOf("techno @ 132, dark")).to.equal(132);
    expect(bpmOf("128 Am techno")).to.equal(128);
    expect(bpmOf("C minor, 90")).to.equal(90);
    expect(bpmOf("ein Stück bei 96.")).to.equal(96);
    expect(bpmOf("Am 124")).to.equal(124);
    for (const caption of ["deep house 124 Gm", "@124 techno", "124 house", "techno, 124", "fast 124"]) {
      expect(bpmOf(caption), caption).to.equal(124);
    }
    for (const caption of [
      "at 90 degrees",
      "at 120 km/h",
      "Symphony No. 40 in G minor",
      "120",
      "tempo at 60 seconds",
      "at 4",
      "12 bar blues",
      "blink 182 pop punk",
      "80s synthpop",
      "route 66 country",
      "pop, 120 seconds",
      "jazz band of 120 people",
      "808 house",
      "100 jazz classics",
      "the best of 120 house tracks",
    ]) {
      expect(bpmOf(caption), caption).to.equal(null);
    }
  });

  it("finds a range of tempos", () => {
    expect(bpmOf("110-120 bpm")).to.deep.equal({ min: 110, max: 120 });
    expect(bpmOf("between 80 and 90 BPM")).to.deep.equal({ min: 80, max: 90 });
    expect(bpmOf("tempo: 120–125")).to.deep.equal({ min: 120, max: 125 });
  });

  it("finds an upper or lower limit of the tempo", () => {
    const below = "under 100 bpm|tempo: no more than 100|nothing over there, at most 100 BPM|unter 100 bpm";
    const above = "over 120 bpm|techno, at least 120 bpm|a tempo above 120|plus de 120 bpm";
    for (const [captions, range] of [
      [below, { min: 80, max: 100 }],
      [above, { min: 120, max: 150 }],
    ] as const) {
      for (const caption of captions.split("|")) expect(bpmOf(caption), caption).to.deep.equal(range);
    }
    expect(readCaption("jazz, under 100 bpm").tempo?.words).to.equal("under 100 bpm");
    expect(bpmOf("over 290 bpm")).to.deep.equal({ min: 290, max: 300 });
    expect(readCaption("under 1000 bpm").remarks.join()).to.include("was ignored");
  });

  it('does not take "over" for a limit if it describes a place', () => {
    for (const caption of ["rapping over 90 bpm drums", "flute over 90bpm breakbeats", "über 90 BPM beats"]) {
      expect(bpmOf(caption), caption).to.equal(90);
    }
    expect(readCaption("rapping over 90 bpm drums").tempo?.words).to.equal("90 bpm");
    expect(bpmOf("over 170 bpm drum and bass")).to.deep.equal({ min: 170, max: 213 });
    expect(bpmOf("over 120 bpm, drums")).to.deep.equal({ min: 120, max: 150 });
    expect(bpmOf("at least 120 bpm beats")).to.deep.equal({ min: 120, max: 150 });
    expect(bpmOf("not over 100 bpm drums")).to.deep.equal({ min: 80, max: 100 });
  });

  it("finds a key in any notation and position", () => {
    const keys = pairs(
      "F# min = F# minor | f#m = F# minor | Bb major = Bb major | Bbmaj = Bb major | Cm = C minor | B-flat minor = Bb minor | " +
        "C sharp minor = C# minor | C♯ minor = C# minor | key of D = D major | in a minor = A minor | in Eb = Eb major | key: G = G major | " +
        "E harmonic minor = E minor | D dorian = D minor | G mixolydian = G major | a-Moll = A minor | Fis-Moll = F# minor | " +
        "B-Dur = Bb major | H-Moll = B minor | es-Moll = Eb minor | la mineur = A minor | si bémol majeur = Bb major | " +
        "fa dièse mineur = F# minor | en si bémol = Bb major | [Key: Am] = A minor | до-диез минор = C# minor | do mayor = C major | re menor = D minor | fa diesis minore = F# minor | " +
        "si bemolle maggiore = Bb major | fá sustenido menor = F# minor | G大调 = G major | 降B大调 = Bb major | 升F小调 = F# minor | " +
        "イ短調 = A minor | 嬰ヘ短調 = F# minor | 変ロ長調 = Bb major | Aマイナー = A minor | 가단조 = A minor | 내림 나장조 = Bb major",
    );
    fc.assert(
      fc.property(plain, fc.constantFrom(...keys), plain, (before, [statement, key], after) => {
        const caption = [before, statement, after].filter(Boolean).join(", ");
        expect(keyOf(caption), caption).to.equal(key);
      }),
    );
  });

  it("does not mistake chord names or ordinary words for a key", () => {
    for (const caption of [
      ...[
        "a minor setback in a major city",
        "in a minor key, a major hit",
        "A minor key ballad",
        "C minor chord stabs",
      ],
      ...[
        "Am - F - C - G",
        "Am7 and Dm7",
        "I am at home",
        "Am I dreaming",
        "5 cm",
        "la mayor parte de la fiesta",
        "in G-funk style",
        "440 Hz tuning in A",
        "guitar tuned to D",
      ],
    ]) {
      expect(keyOf(caption), caption).to.equal(null);
    }
  });

  it("finds a time signature", () => {
    const metres = pairs(
      "a tune in 6/8 = 6 | 3/4-Takt = 3 | 120 BPM, 4/4 = 4 | 2/4 Polka = 2 | a waltz = 3 | Walzer = 3 | une valse = 3 | 圆舞曲 = 3 | " +
        "ワルツ = 3 | 왈츠 = 3 | 4분의 3박자 = 3 | compás ternario = 3 | вальс = 3 | 8分の6拍子 = 6 | 8분의 6박자 = 6 | an Irish jig = 6",
    );
    for (const [caption, beats] of metres) expect(metreOf(caption), caption).to.equal(beats);
    for (const caption of ["3/4 of the people", "24/7", "on 3/4/2020", "no waltz"]) {
      expect(metreOf(caption), caption).to.equal(null);
    }
    expect(readCaption("jazz in 5/4").remarks.join()).to.include('the metre "5/4" is not supported');
  });

  it("derives a usual tempo from pace or genre if the caption states none", () => {
    expect(usualOf("a slow song")).to.deep.equal({ min: 58, max: 80 });
    expect(usualOf("Adagio for strings")).to.deep.equal({ min: 56, max: 76 });
    expect(usualOf("drum and bass")).to.deep.equal({ min: 165, max: 178 });
    expect(usualOf("slow drum and bass")).to.deep.equal({ min: 165, max: 169 });
    expect(usualOf("langsames Lied")).to.deep.equal(usualOf("慢歌"));
    expect(usualOf("ambient techno")).to.deep.equal(usualOf("techno"));
    expect(usualOf("no rock, ambient")).to.deep.equal(usualOf("ambient"));
    for (const caption of [
      "slow song at 170 bpm",
      "not too fast",
      "slow verses, fast chorus",
      "slow attack pads",
    ]) {
      expect(usualOf(caption), caption).to.equal(null);
    }
  });

  for (const { language, caption, bpm, usual, key, metre } of SENTENCES) {
    it(`parses (${language}): ${caption}`, () => {
      const read = [bpmOf(caption), usualOf(caption) !== null, keyOf(caption), metreOf(caption)];
      expect(read).to.deep.equal([bpm ?? null, usual ?? false, key ?? null, metre ?? null]);
    });
  }

  it("ignores negated facts", () => {
    expect(bpmOf("not 120 bpm but 90 bpm")).to.equal(90);
    expect(bpmOf("anything but 120 bpm")).to.equal(null);
    for (const caption of ["don't make it fast", "don’t make it fast"])
      expect(usualOf(caption)).to.equal(null);
    expect(keyOf("not in C major")).to.equal(null);
  });

  it("reports contradictions and impossible tempos", () => {
    const { tempo, keyScale, remarks } = readCaption("120 bpm in A minor, no, rather 90 bpm in E minor");
    expect([tempo?.words, keyScale?.value]).to.deep.equal(["120 bpm", "A minor"]);
    expect(remarks).to.deep.equal([
      'the prompt names more than one tempo, "120 bpm" and "90 bpm"; the first was used',
      'the prompt names more than one key, "A minor" and "E minor"; the first was used',
    ]);
    expect(readCaption("500 bpm").remarks).to.deep.equal([
      'the prompt\'s tempo "500 bpm" was ignored: it must be from 30 to 300',
    ]);
  });

  it("finds no facts in unrelated numbers and words", () => {
    fc.assert(
      fc.property(plain, (caption) => {
        expect(readCaption(caption), caption).to.deep.equal(NOTHING);
      }),
    );
  });

  it("finds only supported values in random text", () => {
    const pieces = fc.constantFrom(
      ..."a b m # ♭ - / . , : in at key of no not bpm tempo minor maj dur moll la si 120 90 4 6/8 b5 升 大调 短調 ロ 가단조 slow rock".split(
        " ",
      ),
    );
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      around(fc.string()),
      fc.array(pieces).map((parts) => parts.join(" ")),
      fc.array(pieces).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, (caption) => {
        const { tempo, keyScale, timeSignature } = readCaption(caption);
        for (const fact of [tempo, keyScale, timeSignature]) {
          if (fact !== null) expect(caption.normalize("NFKC")).to.include(fact.words);
        }
        if (keyScale !== null) expect(canonicalKeyScale(keyScale.value)).to.equal(keyScale.value);
        if (tempo !== null)
          expect(
            30 <= tempo.value.min && tempo.value.min <= tempo.value.max && tempo.value.max <= 300,
          ).to.equal(true);
      }),
      { numRuns: 500 },
    );
  });

  // This test takes minutes if the parser's time is not linear in the text's length.
  it("finds a tempo after 100,000 characters of repeated words", () => {
    for (const unit of [
      "no ",
      "1",
      "1/",
      "a",
      "a minor ",
      "120-",
      "not so ",
      "key ",
      "升",
      "tempo : ",
      "very slow ",
    ]) {
      const { tempo } = readCaption(`${unit.repeat(100_000 / unit.length)} . Waltz at 93 bpm`);
      expect(tempo?.words, unit).to.equal("93 bpm");
    }
  });
});
