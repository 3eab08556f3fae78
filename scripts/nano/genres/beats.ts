/** Beat-driven genres. */
import { parseGenre } from "./genre.js";

export const funk = parseGenre(`
  name         funk
  names        funk, funk groove, funky disco, soul funk, funky jam, 70s funk, disco funk, jazz funk, funk instrumental, P-funk, funk tune
  moods        groovy, playful, tight, energetic, sassy
  scenes       for a house party, for roller skating, with a tight rhythm section, full of swagger
  marks        slap bass, a clavinet riff, tight horn stabs, scratchy sixteenth-note guitar, everything on the one, a syncopated bass groove, muted guitar and horns
  minor        0.55
  ends         ring 0.7, fade 0.3
  width        -10
  feel         swingSteps 1, swing 0.1, timingSeconds 0.005, touch 7
  melody       density 1.6, syncopation 0.7, leap 3
  major verse  I9 | I9 | IV9 | I9 / I7 | IV7 | I7 | IV7
  major chorus I7 | vi7 | ii7 | V7 / IV9 | IV9 | I9 | I9
  major bridge ii7 | V9 | ii7 | V9
  minor verse  i7 | i7 | i7 | IV9 / i7 | iv7 | i7 | iv7
  minor chorus i7 | bVII | bVImaj7 | V7 / bVImaj7 | v7 | i7 | i7
  minor bridge iv7 | bVII7 | i7 | i7
  drums        1, standardKit, powerKit
  bass         1, slapBass, fingerBass
  comp         1, mutedGuitar, cleanGuitar, electricPiano, organ
    pulse        0.4, mutedGuitar, organ
  pad          0.25, strings, organ
  lead         0.85, brassSection, altoSaxophone, trumpet, squareLead
  fill         snare, snare, highTom, lowTom
  4/4, weight 1, 92-122 bpm
    light kick X.x.......x.....  snare ....X..o.o..X...  hat x.x.x.x.x.x.x.x.
    light kick X.....x.x.......  snare ....X..o....X.o.  hat xoxxxoxxxoxxxoxx
    full  kick X.x....x..x..x..  snare ....X..o.o..X..o  hat xxxxxxxxxxxxxxxx
    full  kick X..x..x...x.....  snare ....X..o....X.o.  hat x.xxx.xxx.xxx.x.  open ..............x.
    bass  R..R..O.R.5.7.O.  R.RO..R...R5.7O.  R-..R.O...5.R.A.
    comp  ..x..x....x..x..  x..x..x...x..xx.  ..xx..x...xx..x.
    pulse 0.0.1...0.0.2.1.`);

export const reggae = parseGenre(`
  name         reggae
  names        reggae, reggae groove, roots reggae, dub reggae, reggae tune, rocksteady, dub, lovers rock, reggae song, Jamaican reggae, reggae music
  moods        sunny, easygoing, laid-back, warm, positive
  scenes       for the beach, for a slow afternoon, with an offbeat skank, under palm trees
  marks        offbeat guitar skank, deep bass and one drop drums, an organ bubble, an island afternoon, echoing snare and deep bass, Kingston in the seventies, a chop on the offbeats
  minor        0.45
  ends         ring 0.4, fade 0.6
  width        -10
  feel         swingSteps 1, swing 0.12, timingSeconds 0.007, touch 6
  melody       density 1.1, syncopation 0.5, leap 3
  major verse  I | IV | I | V / I | V | vi | IV / I | ii | I | ii
  major chorus I | vi | IV | V / IV | V | I | I
  major bridge vi | iii | IV | V
  minor verse  i | bVII | i | bVII / i | iv | i | iv / i | bVI | bVII | i
  minor chorus bVI | bVII | i | i / i | iv | v | i
  minor bridge iv | bVII | bIII | V
  drums        1, roomKit, standardKit
  bass         1, fingerBass, deepSynthBass
  comp         1, cleanGuitar, organ, piano
    pulse        0.4, organ, mutedGuitar
  pad          0.15, organ
  lead         0.8, trumpet, tenorSaxophone, organ, cleanGuitar, flute
  fill         snare, highTom, midTom, lowTom
  4/4, weight 1, 66-92 bpm
    light kick ........X.......  rim ........x.......  hat x.x.x.x.x.x.x.x.
    light kick ........X.......  rim ......x.x......x  hat ..x...x...x...x.
    full  kick ........X.......  rim ........X.....o.  hat x.xox.xox.xox.xo
    full  kick X.......X.......  rim ....x...X...x...  hat x.xox.xox.xox.xo
    bass  R-..R-5-..R-..5-  ..R-R-..5-..R-A-  R---..R-5-..A---
    comp  ....x.......x...  ....xx......xx..  ..x...x...x...x.
    pulse ..0...0...0...0.  0.1...0.2...1...`);

export const hipHop = parseGenre(`
  name         hip hop
  names        hip hop, boom bap, trap beat, rap instrumental, old-school hip hop beat, hip-hop, rap beat, trap, hip hop beat, 90s hip hop, hip hop instrumental
  moods        gritty, confident, cool, moody, heavy
  scenes       for rapping over, for a cypher, for city streets at night, with heavy 808s
  marks        heavy 808s and fast hi-hats, a dusty drum loop to rap over, a piano sample and a hard snare, a beat for a rapper, head-nodding drums, a cypher, a booming kick and a vinyl scratch
  minor        0.8
  ends         ring 0.5, fade 0.5
  width        -11
  feel         swingSteps 1, swing 0.18, timingSeconds 0.006, touch 5
  melody       density 0.7, syncopation 0.6, leap 3
  major verse  Imaj7 | vi7 | Imaj7 | vi7
  major chorus IVmaj7 | iii7 | vi7 | vi7
  major bridge ii7 | ii7 | V | V
  minor verse  i7 | i7 | bVI | bVI / i | i | i | V / i7 | iv7 | i7 | iv7
  minor chorus i | bVI | bVII | i / i7 | bVI | iv7 | V
  minor bridge iv7 | iv7 | bVI | bVI
  drums        1, analogKit, electronicKit, standardKit
  bass         1, deepSynthBass, synthBass, uprightBass
  comp         1, electricPiano, piano, strings, organ
    pulse        0.5, celesta, pizzicato, harp
  pad          0.4, warmPad, slowStrings
  lead         0.7, squareLead, flute, mutedTrumpet, altoSaxophone
  fill         snare, snare, kick, clap
  4/4, weight 1, 70-104 bpm
    light kick X......x..x.....  hat   x.x.x.x.x.x.x.x.
    light kick X.........x.....  snare ....X.......X...  hat x.x.x.x.x.x.x.xx
    full  kick X..x...x..x.....  snare ....X.......X...  hat x.x.x.x.x.x.x.x.
    full  kick X.X.....x.X.....  snare ....X..o....X..o  hat x.x.x.x.x.x.x.x.  open ......x.........
    full  kick X......X..X.....  clap  ........X.......  hat xxx.xxxxx.x.xxxx
    full  kick X.....x....X....  clap  ........X.......  hat x.xxx.x.xxx.x.xx  rim  ...x......x.....
    full  kick X.x....x.x......  snare ....X.......X.x.  hat xoxoxoxoxoxoxoxo
    bass  R------R--R-----  R---------R--5--  R-----R---O-----  R--R...R--R.....
    comp  X---------------  x--...x--...x---  X-------X-------  ..x-....x-......
    pulse 0...1...2...1...  0.2.1.2.0.2.1.2.`);

export const latin = parseGenre(`
  name         latin
  names        latin music, salsa, cumbia, cha-cha-cha, Afro-Cuban dance music, latin pop, mambo, merengue, bachata, latin dance music, latin
  moods        fiery, sunny, festive, sensual, lively
  scenes       for a street party, for dancing all night, with congas and horns, for a beach bar
  marks        congas and timbales, a syncopated piano pattern, brass and cowbell, a dance floor in Havana, clave and horns, hips that move, an accordion and a guiro, a street party in Cali
  minor        0.55
  ends         ring 0.8, fade 0.2
  width        -9
  feel         swingSteps 1, swing 0, timingSeconds 0.006, touch 7
  melody       density 1.2, syncopation 0.8, leap 3
  major verse  I | IV | V7 | I / I | vi7 | ii7 | V7
  major chorus I | IV | V7 | IV / ii7 | V7 | I | I
  major bridge IV | IV | V7 | V7
  minor verse  i | iv | V7 | i / i | bVII | bVI | V7
  minor chorus i | i | V7 | V7 / iv | i | V7 | i
  minor bridge bVI | bVI | V7 | V7
  drums        1, handPercussion, standardKit
  bass         1, uprightBass, fingerBass
  comp         1, piano, nylonGuitar, accordion
    pulse        0.6, piano, nylonGuitar, vibraphone
  pad          0.25, strings, brassSection
  lead         0.85, trumpet, brassSection, flute, accordion, piano
  fill         conga, lowConga, conga, mutedConga
  4/4, weight 1, 84-124 bpm
    light claves x..x..x...x.x...  shaker     x.x.x.x.x.x.x.x.
    light conga  ..x.....xx..x...  mutedConga x.x.x.x.x.x.x.x.  cabasa   x.xxx.xxx.xxx.xx
    full  kick   ......X.......X.  claves     ..x.x...x..x..x.  conga    ..x...xx..x...xx  cowbell x...x...x...x...
    full  kick   ...X..X....X..X.  rim        x..x..x...x.x...  conga    ......xx......xx  cabasa  x.xxx.xxx.xxx.xx
    full  kick   X...X...X...X...  cabasa     x.xxx.xxx.xxx.xx  lowConga ......x.......x.  snare   ............o.x.
    bass  ...5--R-...5--R-  R-----5---R---5-  R--5--R-R--5--R-
    comp  x.xx.xx.x.xx.xx.  x..x..x.x..x..x.  ..x...x...x...x.
    pulse 0.21.20.1.20.12.  0.12.01.2.01.20.`);
