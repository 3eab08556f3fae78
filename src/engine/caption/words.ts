/**
 * Vocabulary for tempo, key and metre in common caption languages. Phrases are lower case and match whole words; in
 * scripts without spaces they match anywhere.
 */
import { Phrases, type TempoRange } from "./text.js";

const words = (text: string): string[] => text.split(/\s*\|\s*/);
const phrases = (text: string): Phrases<true> => Phrases.of(words(text));

/** Units after a number: "120 bpm". */
export const TEMPO_UNITS = phrases(
  "bpm | bpms | b.p.m. | bpm's | ish bpm | - ish bpm | + bpm | beats per minute | beats a minute | beats/minute | beats/min | beats per min | beat per minute | " +
    "schläge pro minute | schlägen pro minute | schläge in der minute | beats pro minute | battements par minute | pulsations par minute | à la noire | pulsaciones por minuto | " +
    "golpes por minuto | ppm | battiti al minuto | battute al minuto | batidas por minuto | pulsos por minuto | уд/мин | ударов в минуту | " +
    "拍每分钟 | 拍/分 | 拍每分 | 拍/分钟 | 비피엠 | 박/분",
);

/** Labels before a number: "tempo 120". Labels listed with an equals sign require it. */
export const TEMPO_LABELS = phrases(
  "bpm | b.p.m. | tempo | tempo marking | m.m. | metronome | metronom | métronome | metrónomo | metronomo | темп | 速度 | 拍速 | " +
    "节拍速度 | 每分钟 | 每分 | 毎分 | テンポ | 템포 | 분당 | ♩ = | ♩= | quarter = | quarter note = | crotchet = | viertel = | " +
    "noire = | negra = | semínima = | semiminima = | 四分音符 =",
);

/** Filler words between a label and its number, or before a bare number. */
export const TEMPO_FILLERS = words(
  ': | = | - | ~ | ( | " | of | is | should be | at | around | about | approx | approximately | roughly | near | circa | ca | ca. | c. | the | exactly | steady | ' +
    "set to | von | ist | um | bei | etwa | rund | de | est | à | environ | autour de | es | alrededor de | a | di | è | intorno a | é | " +
    "cerca de | por volta de | は | が | 为 | 為 | 是 | 约 | 約 | 大约 | 은 | 는 | 약 | bpm",
);

/** Words before an upper bound. */
export const UPPER_BOUND_WORDS = words(
  "under | below | less than | slower than | at most | up to | no more than | not more than | no faster than | not faster than | not over | not above | " +
    "max | max. | maximum | unter | höchstens | moins de | au plus | menos de | como máximo | meno di | al massimo | no máximo",
);

/** Words before a lower bound. */
export const LOWER_BOUND_WORDS = words(
  "over | above | more than | faster than | at least | no less than | not less than | no slower than | not under | not below | " +
    "minimum | über | mindestens | plus de | au moins | más de | por lo menos | più di | almeno | mais de | pelo menos",
);

/** Words that mean either a lower bound or a place: "over drums". */
export const AMBIGUOUS_LOWER_BOUND_WORDS = phrases("over | über");

/** If one of these nouns follows the tempo, "over" means a place: "over 90 bpm drums". */
export const BACKING_INSTRUMENTS = phrases(
  "backing | bass | bassline | beat | beats | break | breakbeat | breakbeats | breaks | chords | claps | drum loop | drums | drumming | groove | " +
    "guitar | guitars | kick | kicks | loop | loops | percussion | piano | rhythm | rhythms | riddim | strings | synths",
);

/** Pieces of music that a number may count: "100 jazz classics". */
export const COUNTED_PIECES = phrases(
  "albums | anthems | artists | bands | classics | hits | loops | masterpieces | pieces | records | samples | singles | songs | standards | tracks | tunes",
);

/** Words before a bare number that is a tempo: "at 120". */
export const WORDS_BEFORE_TEMPO = phrases(
  "at | @ | around | at around | at about | at roughly | um | bei | à | 在",
);

/** Words between the ends of a tempo range: "110 to 120". */
export const RANGE_WORDS = phrases(
  "- | – | — | ~ | to | and | or | bis | und | à | et | a | y | e | até | до | 到 | 至 | から | 에서",
);

/** Words between a bare number and a key: "120 in A minor". */
export const KEY_LINKS = Phrases.of([
  ...words("in | in the key of | en | em | auf | , | / | - | – | ; | ( | :"),
  "|",
]);

export const NON_TEMPO_UNITS = phrases(
  "zone | - zone | km | kmh | mph | hz | khz | k | s | ms | sec | secs | second | seconds | min | mins | minutes | bars | measures | years | percent | % | db | ° | " +
    "degrees | x | th | st | nd | rd | er | / | : | '",
);

export const NEGATIONS = phrases(
  "not | no | never | without | isn't | don't | anything but | except | avoid | nicht | kein | keine | keinen | ohne | pas | pas de | sans | sin | non | senza | não | sem | " +
    "不 | 不要 | 别 | 没有 | 非",
);
/** Words that may stand between a negation and the word that it negates: "not too fast". */
export const WORDS_AFTER_NEGATION = phrases(
  "too | so | very | really | that | make it | be | at | in | a | an | the | any | trop | très | zu | sehr | so | muy | tan | troppo | molto | muito | 太 | 很",
);

type Mode = "major" | "minor";

/** Note naming systems: letters, German letters, syllables, kana, hangul. */
export type NoteNaming = "letter" | "german" | "syllable" | "kana" | "hangul";

export interface ModeWords {
  mode: Mode;
  words: string[];
  namings: readonly NoteNaming[];
}

/** Church modes map to major or minor by their third, because the music models know only these two. */
export const MODES: readonly ModeWords[] = [
  { mode: "major", words: words("major | maj | ionian | lydian | mixolydian"), namings: ["letter"] },
  { mode: "minor", words: words("minor | min | aeolian | dorian | phrygian"), namings: ["letter"] },
  { mode: "major", words: words("dur"), namings: ["german"] },
  { mode: "minor", words: words("moll"), namings: ["german"] },
  { mode: "major", words: words("majeur | maggiore | mayor | maior"), namings: ["syllable", "letter"] },
  { mode: "minor", words: words("mineur | minore | menor"), namings: ["syllable", "letter"] },
  { mode: "major", words: words("мажор | мажоре"), namings: ["syllable", "letter"] },
  { mode: "minor", words: words("минор | миноре"), namings: ["syllable", "letter"] },
  { mode: "major", words: words("大调 | 大調 | メジャー | 메이저"), namings: ["letter"] },
  { mode: "minor", words: words("小调 | 小調 | マイナー | 마이너"), namings: ["letter"] },
  { mode: "major", words: words("長調"), namings: ["kana", "letter"] },
  { mode: "minor", words: words("短調"), namings: ["kana", "letter"] },
  { mode: "major", words: words("장조"), namings: ["hangul", "letter"] },
  { mode: "minor", words: words("단조"), namings: ["hangul", "letter"] },
];

/** Words between a note and its mode: "A harmonic minor". */
export const SCALE_WORDS = phrases("natural | harmonic | melodic | pentatonic | blues");

/** Note names other than English letters. */
export const NOTE_NAMES: Readonly<Record<string, { note: string; naming: NoteNaming }>> = {
  ...named("syllable", "do:C dó:C ut:C re:D ré:D mi:E fa:F fá:F sol:G la:A lá:A si:B"),
  ...named("syllable", "до:C ре:D ми:E фа:F соль:G ля:A си:B"),
  ...named("kana", "ハ:C ニ:D ホ:E ヘ:F ト:G イ:A ロ:B"),
  ...named("hangul", "다:C 라:D 마:E 바:F 사:G 가:A 나:B"),
  ...named("german", "c:C d:D e:E f:F g:G a:A h:B b:Bb cis:C# dis:D# eis:E# fis:F# gis:G# ais:A# his:B#"),
  ...named("german", "ces:Cb des:Db es:Eb fes:Fb ges:Gb as:Ab hes:Bb"),
};

function named(naming: NoteNaming, notes: string): Record<string, { note: string; naming: NoteNaming }> {
  const pairs = notes.split(" ").map((pair) => pair.split(":") as [string, string]);
  return Object.fromEntries(pairs.map(([name, note]) => [name, { note, naming }]));
}

/** Accidentals after a note: "F sharp". */
export const SHARPS_AFTER_NOTE = words(
  "# | ♯ | sharp | - sharp | dièse | diese | diesis | sostenido | sustenido | диез | - диез | 升 | シャープ | 샤프",
);
export const FLATS_AFTER_NOTE = words(
  "♭ | flat | - flat | bémol | bemol | bemolle | бемоль | - бемоль | 降 | フラット | 플랫",
);
/** Accidentals before a note: "嬰ヘ". */
export const SHARPS_BEFORE_NOTE = words("# | ♯ | 升 | 嬰 | 올림");
export const FLATS_BEFORE_NOTE = words("♭ | 降 | 変 | 내림");

/** Words before a note without a mode: "key of D". Such a key is major. */
export const KEY_LABELS = phrases(
  "key of | key | key : | key = | key is | key signature : | tonality | tonality : | tonart | tonart : | tonalité | tonalité : | tonalité de | tonalidad | " +
    "tonalidad : | tonalidad de | tonalità | tonalità : | tonalità di | tonalidade | tonalidade de | tom de | tom : | 调性 | 调 : | キー | キーは | 키",
);

/** Words before the note of a tuning: "tuned to D". */
export const TUNING_WORDS = phrases(
  "tuning in | tuning to | tuned in | tuned to | tune to | tuning of | tuning | gestimmt in | accordé en | afinado en",
);

/** Words after a key that give it another meaning: "a minor key", "E major label debut", "la mayor parte". */
export const WORDS_AFTER_FALSE_KEY = phrases(
  "chord | chords | triad | triads | seventh | sevenths | third | thirds | sixth | sixths | 7 | 7th | 9 | akkord | akkorde | accord | accords | " +
    "acorde | acordes | accordo | accordi | parte | 和弦 | コード | 코드 | " +
    "label | labels | league | leagues | record | studio | studios | network | deal | deals | hit | hits | star | stars | debut | debüt | city | cities | " +
    "event | events | crisis | deficiency | depression | outbreak | upset | success | breakthrough | release | releases | artist | artists | player | players | " +
    "act | acts | tour | tours | festival | festivals | award | awards | role | roles | character | characters | threat | threats | road | roads | airport | " +
    "change | changes | issue | issues | problem | problems | injury | injuries | offence | offense | setback | setbacks | detail | details | edits | gray | grey | " +
    "查 | リーグ | レーベル | デビュー | 리그 | 레이블 | 데뷔",
);
/** Words before a letter that is not a note: "vitamin D major deficiency", "press key E". */
export const WORDS_BEFORE_OTHER_LETTER = phrases(
  "vitamin | plan | grade | group | class | team | category | hepatitis | series | division | size | cup | exit | appendix | " +
    "press key | press the key | hit key | hit the key | gruppe | groupe | grupo | gruppo",
);
/** Transposing instruments: "clarinet in A" does not state the song's key. */
export const TRANSPOSING_INSTRUMENTS = phrases(
  "clarinet | clarinets | horn | horns | trumpet | trumpets | cornet | saxophone | sax | klarinette | klarinetten | trompete | trompeten | hörner | " +
    "clarinette | cor | trompette | clarinete | trompeta | trompa | trompete | clarinetto | corno | tromba",
);

export const METRE_WORDS: Readonly<Record<string, readonly string[]>> = {
  "2": words("polka | cut time | alla breve | two-four time | two four time | 二拍子 | 2拍子"),
  "3": words(
    "waltz | waltzes | waltzing | walzer | valse | vals | valzer | valsa | minuet | menuett | menuet | mazurka | ländler | triple metre | " +
      "triple meter | triple time | three-four | three four time | three-quarter time | dreivierteltakt | tre quarti | compás ternario | " +
      "compasso ternário | вальс | 华尔兹 | 華爾茲 | 圆舞曲 | 圓舞曲 | " +
      "ワルツ | 三拍子 | 3拍子 | 왈츠 | 3박자 | 四三拍",
  ),
  "4": words("common time | four-four | four four time | viervierteltakt | 四拍子 | 4拍子 | 4박자 | 四四拍"),
  "6": words(
    "six-eight | six eight time | jig | jigs | gigue | tarantella | barcarolle | siciliana | sechsachteltakt | 6拍子 | 6박자 | 六八拍",
  ),
};

/** Words after a metre that give it another meaning: "polka dots", "the jig is up", "3/4 of the people", "4/4 stars". */
export const WORDS_AFTER_FALSE_METRE = phrases(
  "dot | dots | dotted | - dot | - dots | - dotted | is up | was up | " +
    "stars | sleeve | sleeves | length | full | empty | inch | inches | cup | cups | mile | miles | hour | hours | year | years | view | views | shot | shots | " +
    "- length | - sleeve | - sleeves | der | des | d' | de la | de los | de las | dei | delle | della | stunde | stunden | 的",
);
/** Between one of these words and one of DIRECTIONS, the name of a dance is a verb: "they waltz into the bar". */
export const WORDS_BEFORE_DANCE_VERB = phrases(
  "they | we | you | i | he | she | it | to | who | couples | people",
);
export const DIRECTIONS = phrases("into | out | away | off | through | past");

/** Words before a number that is a heart rate, not a tempo: "pulse of 120". */
export const HEART_RATES = phrases(
  "heart rate | heart rate of | heart rate is | heart rate at | heartbeat of | heartbeat at | pulse of | pulse is | pulse at | pulse rate of | puls von | " +
    "puls bei | herzfrequenz von | fréquence cardiaque de | pouls à | frecuencia cardiaca de | pulso de | frequência cardíaca de | battito cardiaco a | 心率 | 心拍数 | 심박수",
);

/** Tempos of pace words and of Italian tempo marks. */
export const PACE_TEMPOS = tempos(`
  40-58: very slow | extremely slow | super slow | sehr langsam | très lent | très lente | muy lento | molto lento | muito lento | grave
  58-80: slow | slowly | slow-paced | slow tempo | langsam | langsame | langsames | langsamer | lent | lente | lento | lenta | devagar
  58-80: 慢速 | 慢板 | 缓慢 | 慢节奏 | 慢歌 | ゆっくり | スロー | スローテンポ | 느린 | 느리게 | медленный | медленно
  70-95: downtempo | down-tempo | laid-back tempo | unhurried | gemächlich | tranquillo
  90-115: mid-tempo | midtempo | mid tempo | medium tempo | moderate tempo | moderately | mäßig | mäßiges | moderado | modéré | tempo moyen | 中速 | ミディアムテンポ
  110-135: upbeat | up-beat | lively | brisk | lebhaft | lebhafte | lebhafter | lebhaftes | アップテンポ | 업템포
  125-160: fast | fast-paced | up-tempo | uptempo | up tempo | quick | rapid | schnell | schnelle | schnelles | schneller | rapide | rapido
  125-160: rápido | rápida | rapida | veloce | 快节奏 | 快速 | 快歌 | 快板 | 速い | 빠른 | 빠르게 | быстрый | быстро
  160-190: very fast | extremely fast | super fast | breakneck | sehr schnell | très rapide | muy rápido | molto veloce | muito rápido
  40-60: largo
  60-68: larghetto
  56-76: adagio | adagietto
  76-104: andante
  84-108: andantino
  104-116: moderato
  112-124: allegretto
  120-152: allegro
  152-172: vivace
  168-196: presto
  196-220: prestissimo
`);

/** Nouns after a pace word. The pace word then describes the noun, not the tempo: "slow attack". */
export const WORDS_AFTER_FALSE_PACE = phrases(
  "build | build-up | building | attack | release | decay | fade | fade-in | fade-out | motion | burn | burning | burner | cooker | swell | " +
    "swells | arpeggio | arpeggios | arps | hats | hi-hats | runs | tremolo | vibrato | lfo | filter | evolving | reverb | delay | food | lane | cars | " +
    "asleep | fashion | friends | money | autos",
);

/** Nouns before a pace word. The pace word then describes the noun, not the tempo: "comida rápida". */
export const WORDS_BEFORE_FALSE_PACE = phrases("comida | restauration | alimentation");
/** Tempo marks that are also everyday words; they count only at the start of a clause. */
export const AMBIGUOUS_PACES = phrases("grave | presto | largo");

export const AMBIGUOUS_GENRES = phrases(
  "house | garage | trap | rock | soul | country | metal | jungle | drone | swing | drill | doom | juke | rap | folk | march",
);
/**
 * An ambiguous genre word is not a genre if a determiner stands one or two words before it: "my empty house".
 */
export const DETERMINERS = phrases(
  "a | an | the | my | your | our | his | her | their | its | this | that | these | those | every | no | one | in | ein | eine | einem | einen | das | mein | meine | " +
    "une | un | mon | ma",
);
/** Nouns that make the word before them a genre: "a house track". */
export const WORDS_AFTER_GENRE = phrases(
  "music | track | tracks | beat | beats | groove | grooves | song | songs | tune | tunes | anthem | anthems | banger | bangers | mix | jam | number | " +
    "piece | ballad | riff | riffs | guitar | guitars | drums | drum | band | bands | opera | vibe | vibes | style | feel | sound | loop | loops | instrumental | " +
    "for | vocal | vocals | bass | bassline | piano | classic | classics | production | - track | - beat | - groove | - song | - musik | - stück",
);

export const GENRE_TEMPOS = tempos(`
  60-85: ambient | drone | new age | meditation | meditative | spa music | 氛围 | アンビエント | 앰비언트
  60-80: ballad | ballads | ballade | lullaby | balada | ballata | 抒情 | 民谣抒情 | バラード | 발라드
  66-94: lofi | lo-fi | lofi hip hop | lo-fi hip hop | chillhop | lo-fi hip-hop | lofi hip-hop | ローファイ
  84-100: hip hop | hip-hop | boom bap | boom-bap | rap | 嘻哈 | 说唱 | ヒップホップ | 힙합
  130-150: trap | drill
  70-100: trip hop | trip-hop | chillout | chill-out | downbeat
  60-85: r&b | rnb | neo soul | neo-soul | slow jam
  90-115: soul | motown | gospel
  96-118: funk | boogie
  112-126: disco | nu disco | nu-disco | italo disco | ディスコ
  118-128: house | deep house | tech house | progressive house | french house | edm | ハウス | 하우스
  126-140: techno | electro house | minimal techno | hard techno | テクノ | 테크노
  132-142: trance | psytrance | goa | トランス
  138-142: dubstep
  165-178: drum and bass | drum & bass | drum'n'bass | drum n bass | dnb | d&b | jungle | liquid drum and bass
  150-175: hardcore | gabber | happy hardcore | hardstyle
  128-136: garage | uk garage | 2-step
  150-160: footwork | juke
  84-118: synthwave | retrowave | outrun | vaporwave
  100-128: pop | synthpop | synth-pop | k-pop | j-pop | dance pop | electropop | indie pop | 流行 | ポップ | 팝
  104-140: rock | hard rock | classic rock | indie rock | alternative rock | rock and roll | rock'n'roll | 摇滚 | 搖滾 | ロック | 록
  150-190: punk | pop punk | punk rock | skate punk | thrash | thrash metal | speed metal | ska punk
  100-150: metal | heavy metal | メタル | 메탈
  60-85: doom metal | doom | sludge
  70-130: blues | ブルース | 블루스
  84-180: jazz | 爵士 | ジャズ | 재즈
  180-240: bebop | hard bop
  130-190: swing | big band | gypsy jazz
  115-145: bossa nova | bossa
  96-112: samba
  88-104: reggaeton
  66-90: reggae | dub | roots reggae | rocksteady | レゲエ
  120-150: ska
  160-210: salsa | mambo
  110-130: tango | cumbia | cha cha | rumba
  100-116: afrobeat | afrobeats | amapiano | dancehall
  84-128: folk | singer-songwriter | americana | 民谣 | 民謠 | フォーク | 포크
  90-130: country
  110-150: bluegrass | hoedown
  112-120: march | marching band | marsch | marche militaire | marche nuptiale
`);

/** Parses lines such as `40-60: largo`. */
function tempos(table: string): { range: TempoRange; words: string[] }[] {
  return table
    .trim()
    .split("\n")
    .map((line) => {
      const [, min, max, names = ""] = /^\s*(\d+)-(\d+): (.*)$/.exec(line) ?? [];
      return { range: { min: Number(min), max: Number(max) }, words: words(names) };
    });
}
