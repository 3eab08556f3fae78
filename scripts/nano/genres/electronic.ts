/** Electronic genres: synthesisers and drum machines. */
import { parseGenre } from "./genre.js";

export const house = parseGenre(`
  name         house
  names        house, deep house, electronic dance music, club house, house groove, house music, dance music, EDM, tech house, Chicago house, French house
  moods        energetic, hypnotic, uplifting, euphoric, driving
  scenes       for the dance floor, for a night drive, with a four-on-the-floor beat, for a workout
  marks        four on the floor, piano chords over a deep bass, off-beat hi-hats, a club at two in the morning, hands in the air, a kick on every beat and deep chords
  minor        0.65
  ends         ring 0.5, fade 0.5
  width        -9
  feel         swingSteps 1, swing 0.05, timingSeconds 0, touch 3
  melody       density 1.3, syncopation 0.7, leap 3
  major verse  I | V | vi | IV / I | I | IV | IV / Imaj7 | iii7 | vi7 | V
  major chorus I | IV | vi | V / vi | IV | I | V
  major bridge IV | IV | V | V
  minor verse  i7 | i7 | bVII | bVII / i | bVI | bIII | bVII / i7 | iv7 | i7 | v7
  minor chorus i | bVII | bVI | bVII / i | bIII | bVII | bVI / i | bVI | iv | V
  minor bridge bVI | bVII | i | i
  drums        1, analogKit, electronicKit
  bass         1, synthBass, deepSynthBass
  comp         1, brightPiano, organ, polySynth, electricPiano
    pulse        0.6, sawLead, squareLead, polySynth
  pad          0.6, warmPad, sweepPad, strings
  lead         0.75, sawLead, squareLead, brightPiano
  fill         snare, snare, clap, snare
  4/4, weight 1, 116-132 bpm
    light kick X...X...X...X...  open ..x...x...x...x.
    light kick X...X...X...X...  hat  ..x...x...x...xx  rim  ...x..x....x....
    full  kick X...X...X...X...  clap ....X.......X...  open ..x...x...x...x.  hat    x.oox.oox.oox.oo
    full  kick X...X...X...X..o  clap ....X.......X.o.  open ..X...X...X...X.  shaker xoxoxoxoxoxoxoxo
    bass  ..R...R...R...R.  R..R..O...R..R..  ..RR..RO..RR..O.  R-.R-.R-R-.R-.O.
    comp  x--x----x--x----  ..x...x...x...x.  x...x..x..x.x...  ..X-..x-...x..x.
    pulse 0123012301230123  0.2.1.3.0.2.1.3.  0213021302130213`);

export const synthwave = parseGenre(`
  name         synthwave
  names        synthwave, retrowave, 80s synthwave, eighties synth pop, synth pop, outrun, darksynth, 80s pop, retro synth music, new wave, 80s electronic
  moods        nostalgic, neon-lit, cool, dreamy, driving
  scenes       for a drive at night, for a neon city, like an eighties film, with arpeggiated synths
  marks        a pulsing synth bass, gated drums, pink and blue lights, an eighties action film, climbing arpeggios, a sunset grid, a chrome sports car, shimmering old keyboards
  minor        0.7
  ends         ring 0.5, fade 0.5
  width        -7
  feel         swingSteps 1, swing 0, timingSeconds 0, touch 3
  melody       density 1.1, syncopation 0.35, leap 4
  major verse  I | V | vi | IV / I | iii | IV | V
  major chorus I | IV | vi | V / IV | V | I | vi
  major bridge ii | IV | V | V
  minor verse  i | i | bVI | bVII / i | bVII | bVI | bVI / i | bIII | bVII | iv
  minor chorus i | bVI | bIII | bVII / bVI | bVII | i | i
  minor bridge iv | bVI | bVII | V
  drums        1, electronicKit, analogKit
  bass         1, synthBass, deepSynthBass
  comp         1, polySynth, brightPiano
    pulse        0.8, squareLead, sawLead, polySynth
  pad          0.8, warmPad, sweepPad
  lead         0.8, sawLead, squareLead
  fill         snare, highTom, midTom, lowTom
  4/4, weight 1, 84-118 bpm
    light kick X.......X.......  hat   x.x.x.x.x.x.x.x.
    light kick X...X...X...X...  rim   ....x.......x...  hat ..x...x...x...x.
    full  kick X...X...X...X...  snare ....X.......X...  hat x.x.x.x.x.x.x.x.
    full  kick X.....x.X.......  snare ....X.......X...  hat xxxxxxxxxxxxxxxx
    bass  RRORRRORRRORRROR  R.R.R.R.R.R.R.R.  R.OOR.OOR.OOR.OO
    comp  x---------------  x-------x-------  x-----x-----x---
    pulse 0123210301232103  0.1.2.3.0.1.2.3.  0213021302130213`);

export const drumAndBass = parseGenre(`
  name         drum and bass
  names        drum and bass, jungle, liquid drum and bass, fast breakbeat music, drum'n'bass, DnB, drum & bass, dnb, breakbeat, neurofunk, jungle music
  moods        frantic, dark, rolling, urgent, floating
  scenes       for a late-night rave, with chopped breakbeats, for a chase, over deep sub bass
  marks        fast chopped breakbeats, a rolling sub bass at double speed, frantic drums and airy pads, a rave in a tunnel, breaks at 174, an amen break, racing drums and a growling bass
  minor        0.8
  ends         ring 0.6, fade 0.4
  width        -9
  feel         swingSteps 1, swing 0.04, timingSeconds 0.002, touch 6
  melody       density 0.8, syncopation 0.7, leap 4
  major verse  Imaj7 | Imaj7 | vi7 | vi7 / I | I | IV | IV
  major chorus IVmaj7 | V | vi7 | V / I | vi | IV | V
  major bridge IV | IV | I | I
  minor verse  i7 | i7 | bVI | bVI / i | i | iv | iv / i7 | i7 | i7 | bVII
  minor chorus i | bVI | bIII | bVII / bVI | bVII | i | i / i7 | bVI | iv7 | bVII
  minor bridge iv7 | iv7 | bVI | bVII
  drums        1, electronicKit, roomKit
  bass         1, deepSynthBass, synthBass
  comp         1, electricPiano, polySynth, organ
    pulse        0.4, squareLead, celesta, polySynth
  pad          0.8, sweepPad, glassPad, warmPad
  lead         0.7, sawLead, squareLead, flute
  fill         snare, snare, kick, snare
  4/4, weight 1, 164-178 bpm
    light kick X.........X.....  hat   x.x.x.x.x.x.x.x.
    light kick X.........x.....  snare ....X.......X...  ride x.x.x.x.x.x.x.x.
    full  kick X.........X.....  snare ....X..o.o..X..o  hat  x.x.x.x.x.x.x.x.
    full  kick X.X.......X.....  snare ....X..x.x..X...  ride X.x.X.x.X.x.X.x.
    full  kick X..X......X..x..  snare ....X..o.X..X.o.  hat  xoxoxoxoxoxoxoxo
    full  kick X.....X...X.....  snare ....X.....o.X..x  open ..x...x...x...x.
    full  kick X.x.......xX....  snare ....X..x....o.X.  hat  x.xxx.x.x.xxx.x.
    bass  R---------R-----  R-----R---O-R---  R--R--..R--A----  R-.R..R-.R..O-..
    comp  X-------..X-----  x--.....x--.....  ..X---..........  X---------------
    pulse 0.1.2.3.2.1.0.1.  0...2...1...3...`);

export const techno = parseGenre(`
  name         techno
  names        techno, dark techno, minimal techno, warehouse techno, industrial techno beat, acid techno, Detroit techno, hard techno, melodic techno, techno music, underground techno
  moods        hypnotic, dark, relentless, mechanical, cold
  scenes       for a warehouse, for the hours before dawn, with a pounding kick, for machines
  marks        a pounding kick and a dark loop, a warehouse at five in the morning, hypnotic machine drums, an acid line, a relentless distorted kick, a concrete bunker, cold repeating synths
  minor        0.9
  ends         ring 0.5, fade 0.5
  width        -10
  feel         swingSteps 1, swing 0.02, timingSeconds 0, touch 2
  melody       density 0.9, syncopation 0.9, leap 2
  major verse  I | I | I | bVII
  major chorus I | I | IV | I
  major bridge IV | IV | IV | IV
  minor verse  i | i | i | i / i7 | i7 | i7 | bVII
  minor chorus i | i | bVI | bVI / i | i | iv | i / i | bVII | i | bVII
  minor bridge bVI | bVI | bVI | bVI / iv | iv | iv | iv
  drums        1, analogKit, electronicKit
  bass         1, synthBass, deepSynthBass
  comp         1, polySynth, squareLead, organ
    pulse        0.8, squareLead, sawLead
  pad          0.4, sweepPad, warmPad
  lead         0.5, squareLead, sawLead
  fill         snare, clap, lowTom, snare
  4/4, weight 1, 124-144 bpm
    light kick X...X...X...X...
    light kick X...X...X...X...  hat  ..x...x...x...x.
    light kick X...X...X...X...  rim  ...x..x....x..x.
    full  kick X...X...X...X...  open ..X...X...X...X.  hat  xxoxxxoxxxoxxxox  clap   ....X.......X...
    full  kick X...X...X...X.x.  hat  oxXxoxXxoxXxoxXx  rim  ..x..x....x..x..
    full  kick X...X...X...X...  ride ..X...X...X...X.  clap ....x.......x..o  lowTom ......x......x..
    bass  ..R...R...R...R.  .RRR.RRR.RRR.RRR  R..R..R.R..R..R.  ..RR..RR..RR..RO
    comp  ...x..x....x..x.  x.....x...x.....  ......X-......X-  ..x..x..x..x..x.
    pulse 0010020003001000  0120120120120120  0.0.1.0.0.2.0.1.`);

export const trance = parseGenre(`
  name         trance
  names        trance, uplifting trance, euphoric trance, progressive trance, trance music, psytrance, tech trance, 90s trance, trance anthem, goa trance, vocal-free trance
  moods        euphoric, soaring, uplifting, dreamy, bright
  scenes       for a festival at sunrise, with arpeggiated synths, for running, with a huge breakdown
  marks        a huge supersaw melody, rolling bass and a long breakdown, a sunrise over the crowd, hands up and soaring chords, gated pads, an arpeggio that climbs for minutes, a festival at dawn
  minor        0.75
  ends         ring 0.5, fade 0.5
  width        -7
  feel         swingSteps 1, swing 0, timingSeconds 0, touch 3
  melody       density 1, syncopation 0.4, leap 4
  major verse  I | V | vi | IV / vi | IV | I | V
  major chorus IV | V | vi | I / I | V | IV | V
  major bridge IV | IV | V | V
  minor verse  i | bVI | bIII | bVII / i | i | bVI | bVII
  minor chorus bVI | bVII | i | i / i | bVII | bVI | bVII / i | bVI | iv | bVII
  minor bridge bVI | bIII | iv | V / iv | bVI | bVII | V
  drums        1, electronicKit, analogKit
  bass         1, synthBass
  comp         1, polySynth, sawLead
    pulse        0.95, sawLead, squareLead, polySynth
  pad          0.8, sweepPad, strings, warmPad
  lead         0.85, sawLead, squareLead, brightPiano
  fill         snare, snare, snare, clap
  4/4, weight 1, 130-142 bpm
    light kick X...X...X...X...
    light kick X...X...X...X...  open ..x...x...x...x.
    full  kick X...X...X...X...  open ..X...X...X...X.  clap  ....X.......X...  hat  xoxoxoxoxoxoxoxo
    full  kick X...X...X...X...  open ..X...X...X...X.  snare ....X.......X...  ride x.x.x.x.x.x.x.x.
    bass  .RRR.RRR.RRR.RRR  ..RR..RR..RR..RR  ..R...R...R...R.
    comp  X---------------  x.x.x.x.x.x.x.x.  X--X--X-X--X--X-
    pulse 0123012301230123  0213021302130213  0132013201320132  0121012101210121`);
