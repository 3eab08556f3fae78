/** Folk, blues, and two genres that descend from them: country and soul. */
import { parseGenre } from "./genre.js";

export const folk = parseGenre(`
  name         folk
  names        folk, acoustic folk, folk tune, country folk, traditional folk music, indie folk, folk song, acoustic ballad, Americana, Irish folk, folk music
  moods        warm, earthy, cheerful, heartfelt, rustic
  scenes       around a campfire, for a village dance, for a walk in the hills, with strummed chords
  marks        a fiddle and a banjo, a story with an acoustic guitar, a wooden porch, picked guitar and a tin whistle, a reel, an old ballad from the mountains, mandolin and fiddle, a hand drum and a flute
  minor        0.35
  ends         ring 0.7, slow 0.3
  width        -10
  feel         swingSteps 2, swing 0.03, timingSeconds 0.009, touch 7
  melody       density 1.6, syncopation 0.15, leap 3
  major verse  I | IV | I | V / I | I | V | I / I | V | vi | IV / I | bVII | IV | I
  major chorus IV | I | V | I / I | IV | V | I
  major bridge vi | IV | I | V
  minor verse  i | bVII | i | bVII / i | bIII | bVII | i / i | bVII | bVI | bVII
  minor chorus bIII | bVII | i | i / i | iv | bVII | i
  minor bridge bVI | bIII | bVII | i
  drums        0.65, handPercussion
  bass         1, uprightBass
  comp         1, steelGuitar, nylonGuitar
  pad          0.25, accordion, slowStrings
  lead         0.9, violin, tinWhistle, accordion, flute, steelGuitar
  fill         tambourine, conga, lowConga
  4/4, weight 3, 80-144 bpm
    light kick x.......x.......  tambourine ....x.......x...
    light kick x.....x.x.......  tambourine ....x..x....x..x
    full  kick X...x...X...x...  tambourine x.x.X.x.x.x.X.x.  conga ......x.......x.
    bass  R-------5-------  R---5---R---5---
    comp  b---u-u-b---u-u-  X---x-xx..xxx-x-  0-2-1-2-0-2-1-2-
  6/8, weight 2, 84-126 bpm
    light kick x.....x.....  tambourine ....x.....x.
    light kick x.....x...x.  tambourine ..x.x...x.x.
    full  kick X...o.X...o.  tambourine x.x.x.x.x.x.
    bass  R-----5-----  R---R-5---5-
    comp  b---u-b---u-  x-x-x-x-x-x-  0-1-2-3-2-1-
  3/4, weight 1.5, 90-150 bpm
    light kick x...........  tambourine ....x...x...
    light kick x.......x...  tambourine ....x.....x.
    full  kick X...........  tambourine ..x.X.x.X.x.
    bass  R-------5---  R-----------
    comp  b---u---u---  x---x-x-x-x-  0-1-2-3-2-1-
  2/4, weight 1.5, 96-140 bpm
    light kick x.......  tambourine ..x...x.
    light kick x...x...  tambourine ..x..xx.
    full  kick X...x...  tambourine x.X.x.X.
    bass  R---5---
    comp  b-u-b-u-  ..x-..x-`);

export const blues = parseGenre(`
  name         blues
  names        blues, slow blues, twelve-bar blues, electric blues, blues shuffle, Chicago blues, blues rock, acoustic blues, blues song, blues guitar, blues music
  moods        gritty, lonesome, smoky, weary, soulful
  scenes       for a bar after midnight, about hard luck, for a back porch, with bent notes
  marks        a crying guitar over twelve bars, a slow shuffle, bent notes and a smoky bar, a harmonica on a back porch, hard luck and whisky, call and response guitar, a bottleneck slide
  minor        0.3
  ends         ring 0.7, slow 0.3
  width        -10
  feel         swingSteps 2, swing 0.33, timingSeconds 0.012, touch 9
  melody       density 1, syncopation 0.5, leap 3
  major verse  I7 | I7 | I7 | I7 | IV7 | IV7 | I7 | I7 | V7 | IV7 | I7 | V7 / I7 | IV7 | I7 | V7
  major chorus I7 | IV7 | I7 | I7 | IV7 | IV7 | I7 | I7 | V7 | IV7 | I7 | I7
  major bridge IV7 | IV7 | I7 | V7
  minor verse  i7 | iv7 | i7 | i7 | iv7 | iv7 | i7 | i7 | bVI | V7 | i7 | V7 / i7 | iv7 | i7 | V7
  minor chorus iv7 | iv7 | i7 | i7 | bVI | V7 | i7 | i7
  minor bridge iv7 | iv7 | bVI | V7
  drums        0.85, standardKit, roomKit, brushKit
  bass         1, fingerBass, uprightBass
  comp         1, cleanGuitar, piano, organ, overdrivenGuitar
    pulse        0.3, piano, steelGuitar
  pad          0.4, organ
  lead         0.9, overdrivenGuitar, jazzGuitar, tenorSaxophone, steelGuitar, piano
  fill         snare, highTom, midTom, snare
  4/4, weight 4, 66-132 bpm
    light kick X.......x.......  rim   ....X.......X...  ride x.x.x.x.x.x.x.x.
    light kick X.......x.x.....  snare ....x.......x...  hat  x.x.x.x.x.x.x.x.
    full  kick X.......X.x.....  snare ....X.......X...  ride X.x.X.x.X.x.X.x.
    full  kick X...x...X...x...  snare ....X.....o.X...  hat  X.x.X.x.X.x.X.x.
    bass  R---R---5---A---  R.R.5.5.A.A.5.5.  R---3---5---A---
    comp  x.x.x.x.x.x.x.x.  ..x---..x---....  X-----x-..x-....  ....x-......x---
    pulse 0.1.2.1.0.1.2.1.
  6/8, weight 2, 60-76 bpm
    light kick X.........x.  rim   ......X.....  ride x.x.x.x.x.x.
    full  kick X.....x...x.  snare ......X.....  hat  X.x.x.X.x.x.
    bass  R---R-5---A-  R-----5---R-
    comp  x.x.x.x.x.x.  X-----x-----
    pulse 0.1.2.3.2.1.`);

export const country = parseGenre(`
  name         country
  names        country, country music, honky-tonk, country ballad, bluegrass-tinged country, country song, country rock, outlaw country, Nashville country, western swing, modern country
  moods        easygoing, heartfelt, twangy, homesick, cheerful
  scenes       for a pickup truck, for a barn dance, about a small town, for wide open plains
  marks        lap steel and twangy guitar, boots and a dusty road, a train beat and a fiddle, a honky-tonk piano, a pickup truck, a barn full of dancers, a Telecaster and a heartbreak
  minor        0.15
  ends         ring 0.8, slow 0.2
  width        -9
  feel         swingSteps 2, swing 0.08, timingSeconds 0.008, touch 6
  melody       density 1, syncopation 0.25, leap 3
  major verse  I | I | IV | I / I | IV | I | V / I | I | V | V
  major chorus IV | I | V | I / I | IV | V | I / I | V | IV | I
  major bridge vi | IV | V | V / IV | I | ii | V
  minor verse  i | i | bVII | i / i | iv | i | V
  minor chorus bIII | bVII | i | i / iv | i | V | i
  minor bridge bVI | bVII | i | V
  drums        0.85, standardKit, brushKit
  bass         1, uprightBass, fingerBass
  comp         1, steelGuitar, cleanGuitar, piano
    pulse        0.6, steelGuitar, nylonGuitar
  pad          0.25, slowStrings, organ
  lead         0.85, violin, steelGuitar, cleanGuitar, piano
  fill         snare, snare, midTom, lowTom
  4/4, weight 4, 78-150 bpm
    light kick  X.......X.......  rim   ....X.......X...  hat x.x.x.x.x.x.x.x.
    light brush x.x.X.x.x.x.X.x.  kick  X.......X.......
    full  kick  X.......X.......  snare x.x.X.x.x.x.X.x.  hat x...x...x...x...
    full  kick  X.....x.X.......  snare ....X.......X...  hat x.x.x.x.x.x.x.x.  tambourine ....x.......x...
    bass  R-------5-------  R---....5---....  R---5---R---A---
    comp  ....x-......x-..  x-..x-x-x-..x-x-  x---x-x-x---x-x-
    pulse 0.2.1.2.0.2.1.2.  0213021302130213
  3/4, weight 2, 84-138 bpm
    light kick X...........  rim   ....x...x...  hat x.x.x.x.x.x.
    full  kick X...........  snare ....X...X...  hat x...x...x...
    bass  R-----------  R-------A---
    comp  ....x---x---  X---x---x---
    pulse 0.1.2.1.2.1.
  2/4, weight 1, 96-144 bpm
    light brush x.x.X.x.  kick  X.......
    full  kick  X...x...  snare ..X...X.
    bass  R---5---
    comp  ..x-..x-
    pulse 0.2.1.2.`);

export const soul = parseGenre(`
  name         soul
  names        soul, soul music, rhythm and blues, classic soul, neo soul groove, R&B, 60s soul, southern soul, neo soul, soul ballad, soul tune
  moods        warm, heartfelt, smooth, tender, joyful
  scenes       for a slow dance, for a Sunday morning, with sweet horns, about love
  marks        horns and a tambourine, a Hammond organ and a slow groove, heartfelt chords on a Rhodes, a church choir feeling, a tender slow jam, warm bass and sweet strings, a Memphis studio
  minor        0.35
  ends         ring 0.5, fade 0.5
  width        -9
  feel         swingSteps 1, swing 0.12, timingSeconds 0.012, touch 7
  melody       density 1, syncopation 0.6, leap 3
  major verse  Imaj7 | vi7 | ii7 | V7 / I | iii7 | IV | V / Imaj7 | Imaj7 | IVmaj7 | IVmaj7
  major chorus I | vi7 | IV | V7 / IVmaj7 | iii7 | ii7 | Imaj7
  major bridge IVmaj7 | iv7 | Imaj7 | V7
  minor verse  i7 | iv7 | i7 | v7 / i7 | bVII | bVI | V7
  minor chorus iv7 | bVII | bIII | bVI / i7 | iv7 | bVI | V7
  minor bridge bVI | bVII | i7 | V7
  drums        0.95, standardKit, roomKit
  bass         1, fingerBass
  comp         1, electricPiano, organ, cleanGuitar, piano
    pulse        0.35, mutedGuitar, vibraphone
  pad          0.6, strings, slowStrings, organ
  lead         0.85, altoSaxophone, tenorSaxophone, electricPiano, trumpet, cleanGuitar
  fill         snare, highTom, midTom, snare
  4/4, weight 4, 68-118 bpm
    light kick X.....x.X.......  rim   ....X.......X...  hat x.x.x.x.x.x.x.x.
    light kick X..x......x.....  snare ....x.......x...  hat x.x.x.x.x.x.x.x.
    full  kick X.....x.X..x....  snare ....X.......X..o  hat x.x.x.x.x.x.x.x.  tambourine ....x.......x...
    full  kick X..x..x...x..x..  snare ....X..o.o..X...  hat xox.xox.xox.xox.
    bass  R--R..R.5..O..A.  R-----R-5---A---  R..R..5...O.5.A.
    comp  ....x-......x-..  x---..x---..x---  ..x...x.....x.x.
    pulse 0.1.2.3.2.1.2.3.
  6/8, weight 1, 60-74 bpm
    light kick X.........x.  rim   ......X.....  hat  x.x.x.x.x.x.
    light kick X...x.....x.  rim   ......X.....  ride x.x.x.x.x.x.
    full  kick X...x.....x.  snare ......X.....  hat  X.x.x.X.x.x.
    bass  R-----R-5-A-
    comp  x.x.x.x.x.x.  X-----x-----
    pulse 0.1.2.3.2.1.`);
