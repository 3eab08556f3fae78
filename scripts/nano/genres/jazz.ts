/** Jazz, and two genres with jazz chords: bossa nova and lo-fi hip hop. */
import { parseGenre } from "./genre.js";

export const bossaNova = parseGenre(`
  name         bossa nova
  names        bossa nova, slow bossa nova, Brazilian jazz, latin lounge, samba, bossa, Brazilian bossa nova, bossa jazz, gentle bossa nova, bossa nova tune, Brazilian music
  moods        breezy, romantic, sunny, relaxed, charming
  scenes       for a beach cafe, for a summer evening, with a gentle latin groove, by the sea
  marks        a whispering nylon guitar, soft syncopated guitar and brushes, a lazy Rio afternoon, gentle cross-stick and guitar, a Copacabana breeze, quiet Brazilian guitar chords
  minor        0.45
  ends         ring 0.6, slow 0.2, fade 0.2
  width        -10
  feel         swingSteps 2, swing 0, timingSeconds 0.008, touch 6
  melody       density 1.1, syncopation 0.7, leap 3
  major verse  Imaj7 | Imaj7 | II7 | II7 | ii7 | V7 | Imaj7 | Imaj7 / Imaj7 | vi7 | ii7 | V7 / Imaj9 | ii7 | iii7 | ii7 V7
  major chorus ii7 | V7 | Imaj7 | IVmaj7 / IVmaj7 | iv7 | iii7 | ii7 V7
  major bridge vi7 | II7 | ii7 | V7
  minor verse  i7 | i7 | iiø7 | V7 / i7 | iv7 | V7 | i7
  minor chorus iv7 | bVII7 | bIIImaj7 | bVImaj7 / iv7 | i7 | iiø7 V7 | i7
  minor bridge bVImaj7 | bIIImaj7 | iiø7 | V7
  drums        1, brushKit, jazzKit, handPercussion
  bass         1, uprightBass, fingerBass
  comp         1, nylonGuitar
  pad          0.25, slowStrings
  lead         0.9, flute, tenorSaxophone, vibraphone, piano, altoSaxophone
  fill         rim, conga, lowConga
  4/4, weight 3, 108-148 bpm
    light rim  x.....x.....x...  hat    X.x.X.x.X.x.X.x.
    light rim  x..x..x...x..x..  shaker XoooXoooXoooXooo
    full  kick X.....x.X.....x.  rim    x.....x.....x...  hat X.x.X.x.X.x.X.x.
    bass  R-----5-5-----R-  R-----5-R-----5-
    comp  b-x-..x-b...x-..  x---..x-..x-....  ..x-..x-x---..x-
  2/4, weight 2, 72-108 bpm
    light shaker XoooXooo  rim    x..x..x.
    light shaker XoooXooo  rim    ..x.x..x
    full  kick   X..xX..x  shaker XoooXooo  rim x..x..x.  lowConga ....X...
    bass  R--55--R  R--5R--5
    comp  b.xx.x.x  x..x.xx.`);

export const jazz = parseGenre(`
  name         jazz
  names        jazz, swing jazz, jazz tune, bebop-flavoured jazz, small-combo jazz, cool jazz, swing, jazz trio, jazz ballad, bebop, lounge jazz
  moods        smoky, playful, sophisticated, swinging, smooth
  scenes       in a late-night club, for a candlelit bar, with a walking bass, for a lazy Sunday
  marks        walking bass and brushes, a tenor saxophone solo, swing on the ride cymbal, a smoky club, piano with bass and drums, a muted trumpet, improvised solos over changes, a quartet after midnight
  minor        0.4
  ends         ring 0.6, slow 0.4
  width        -10
  feel         swingSteps 2, swing 0.3, timingSeconds 0.01, touch 8
  melody       density 1.7, syncopation 0.6, leap 4
  major verse  Imaj7 | vi7 | ii7 | V7 / Imaj7 | VI7 | ii7 V7 | Imaj7 / I7 | IV7 | I7 | I7 | IV7 | IV7 | I7 | V7
  major chorus ii7 | V7 | Imaj7 | Imaj7 / iii7 VI7 | ii7 V7 | Imaj7 | Imaj7
  major bridge IVmaj7 | iv7 | iii7 VI7 | ii7 V7
  minor verse  i7 | iv7 | iiø7 V7 | i7 / i7 | bVImaj7 | iiø7 | V7
  minor chorus iv7 | bVII7 | bIIImaj7 | iiø7 V7 / iiø7 | V7 | i7 | i7
  minor bridge bIIImaj7 | bVImaj7 | iiø7 | V7
  drums        0.9, jazzKit, brushKit
  bass         1, uprightBass
  comp         1, piano, jazzGuitar, electricPiano
  lead         0.95, tenorSaxophone, altoSaxophone, trumpet, mutedTrumpet, vibraphone, clarinet, piano
  fill         snare, highTom, snare, lowTom
  4/4, weight 4, 104-176 bpm
    light ride x...x.x.x...x.x.  pedal ....x.......x...
    light ride x...x...x.x.x...  pedal ....x.......x...  snare ......o......o..
    full  ride X...x.x.X...x.x.  pedal ....x.......x...  snare ......o.......o.  kick o.......o.......
    full  ride X...x.x.X...x.x.  pedal ....x.......x...  snare ..o.......o...o.  kick x.........o.....
    bass  R---3---5---A---  R---5---7---A---  R---7---5---A---
    comp  x-....x-........  ..x-......x-....  x-....x-..x---..  ......x-....x-..
  3/4, weight 1, 100-160 bpm
    light ride x...x.x.x...  pedal ....x.......
    light ride x...x...x.x.  pedal ....x...x...
    full  ride X...x.x.x.x.  pedal ....x...x...  kick x...........
    bass  R---5---A---  R---3---5---  R-------A---
    comp  x-....x-....  ..x-....x-..  ....x-..x-..`);

export const lofi = parseGenre(`
  name         lofi
  names        lofi hip hop, lo-fi hip hop, lofi beat, chillhop, lo-fi study beat, lofi, lo-fi, chill beats, study beats, lo-fi beats, lofi music
  moods        relaxed, dreamy, cozy, nostalgic, mellow
  scenes       for studying, for a rainy night, for late evenings, with a laid-back groove
  marks        dusty drums and record noise, a mellow electric piano loop, tape wobble, music to study with, a lazy muffled beat, a sleepy jazzy loop, homework on a rainy evening
  minor        0.55
  ends         ring 0.4, fade 0.6
  width        -10
  feel         swingSteps 1, swing 0.22, timingSeconds 0.008, touch 6
  melody       density 1, syncopation 0.6, leap 3
  major verse  Imaj7 | vi7 | ii7 | V7 / Imaj9 | iii7 | IVmaj7 | V7 / Imaj7 | IVmaj7 | Imaj7 | IVmaj7
  major chorus ii7 | V7 | Imaj7 | vi7 / IVmaj7 | iii7 | ii7 V7 | Imaj7
  major bridge vi7 | iii7 | IVmaj7 | V7
  minor verse  i7 | iv7 | bVIImaj7 | bIIImaj7 / i9 | bVImaj7 | i9 | v7 / i7 | bVImaj7 | iv7 | V7
  minor chorus iv7 | bVII7 | bIIImaj7 | i7 / i7 | iv7 | bVImaj7 | V7
  minor bridge bVImaj7 | bVII | i7 | i7
  drums        1, roomKit, electronicKit
  bass         1, fingerBass, uprightBass, deepSynthBass
  comp         1, electricPiano, piano, jazzGuitar
    pulse        0.4, nylonGuitar, celesta, electricPiano
  pad          0.4, warmPad, slowStrings
  lead         0.8, vibraphone, flute, tenorSaxophone, jazzGuitar, mutedTrumpet
  fill         snare, snare, kick, snare
  4/4, weight 1, 66-94 bpm
    light kick x.........x.....  snare ....x.......x...  hat x.x.x.x.x.x.x.x.
    light kick x......xx.......  rim   ....x.......x...  hat x.x.x.xxx.x.x.x.
    full  kick X......x..x.....  snare ....X.......X..o  hat x.xox.x.x.xox.x.
    full  kick X..x......x..x..  snare ....X..o....X...  hat x.x.x.xox.x.x.xo
    bass  R------.5--.R---  R----.R-..R-5---  R-------..5-A---
    comp  x-------..x-----  ..x---x---------  x-----x-----x---  b-..u---b-..u---
    pulse 0.1.2.1.3.2.1.2.  ..2...3...1...2.`);
