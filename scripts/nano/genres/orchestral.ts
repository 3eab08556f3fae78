/** Genres played by orchestras, pianos and pads. */
import { parseGenre } from "./genre.js";

export const ambient = parseGenre(`
  name         ambient
  names        ambient, calm ambient, ambient soundscape, meditative ambient, new age, ambient drone, ambient pads, atmospheric music, ambient electronica, ambient music, relaxing ambient
  moods        peaceful, ethereal, floating, calm, spacious
  scenes       for meditation, for deep sleep, like drifting in space, with slow evolving pads
  marks        one long soft tone, slow swelling pads, nothing to tap a foot to, sounds that float, washes of reverb, music for stillness, endless sustained chords, barely moving textures
  minor        0.45
  ends         ring 0.4, fade 0.6
  width        -6
  feel         swingSteps 1, swing 0, timingSeconds 0.006, touch 5
  melody       density 0.6, syncopation 0.1, leap 4
  major verse  Imaj7 | Imaj7 | IVmaj7 | IVmaj7 / Iadd9 | vi7 | IVmaj7 | Vsus4 / Isus2 | I | IVmaj7 | I
  major chorus Imaj7 | iii7 | IVmaj7 | I / IVmaj7 | I | vi7 | I
  major bridge vi7 | IVmaj7 | ii7 | Vsus4
  minor verse  i7 | i7 | bVImaj7 | bVImaj7 / iadd9 | bIIImaj7 | bVImaj7 | bVII / i | iv7 | i | bVII
  minor chorus i7 | bVImaj7 | bIIImaj7 | i7 / bVImaj7 | bVII | i7 | i7
  minor bridge iv7 | bVImaj7 | i7 | i7
  bass         1, deepSynthBass, cello
  comp         1, electricPiano, harp, piano, celesta
    pulse        0.5, celesta, glassPad, harp
  pad          1, warmPad, glassPad, sweepPad, slowStrings
  lead         0.75, flute, glassPad, cello, vibraphone
  fill         cabasa
  4/4, weight 3, 60-84 bpm
    bass  R---------------  R-------5-------
    comp  0-..1-..2-..3-..  0-1-2-3-2-1-2-1-  x-------x-------
    pulse 0...2...1...3...  0.1.2.3.4.3.2.1.
  3/4, weight 1, 60-84 bpm
    bass  R-----------
    comp  0-..1-..2-..  0-1-2-3-2-1-
    pulse 0...2...1...  0.1.2.3.2.1.
  6/8, weight 1, 60-72 bpm
    bass  R-----------
    comp  0-1-2-3-2-1-
    pulse 0.1.2.3.2.1.`);

export const cinematic = parseGenre(`
  name         cinematic
  names        cinematic, epic film score, orchestral cinematic, dramatic soundtrack, trailer music, film score, movie soundtrack, orchestral score, cinematic music, epic orchestral music, film music
  moods        epic, dramatic, heroic, dark, majestic
  scenes       for a film trailer, for a battle scene, with a full orchestra, for a vast landscape
  marks        huge horn hits, thundering war drums, rising strings, the hero arrives, a slow orchestral build, a huge orchestra at full force, tense low strings, choir and horns
  minor        0.7
  ends         ring 0.8, slow 0.2
  width        -8
  feel         swingSteps 2, swing 0, timingSeconds 0.007, touch 6
  melody       density 0.8, syncopation 0.1, leap 4
  major verse  I | V | vi | IV / I | bVII | IV | I / I | iii | IV | V
  major chorus I | bVI | bVII | I / IV | V | I | I
  major bridge vi | iii | IV | V
  minor verse  i | bVI | bIII | bVII / i | i | bVI | V / i | bVII | bVI | bVII
  minor chorus i | bVI | iv | V / bVI | bVII | i | i / i | bIII | bVI | bVII
  minor bridge iv | i | bVI | V
  drums        0.85, orchestralDrums
  bass         1, cello, deepSynthBass
  comp         1, strings, pizzicato, piano
    pulse        0.7, pizzicato, piano, harp
  pad          0.6, slowStrings, warmPad
  lead         0.9, frenchHorn, violin, trumpet, brassSection, oboe
  fill         snare, lowTom, midTom, lowTom
  4/4, weight 3, 76-140 bpm
    light kick X...x...x...x...
    light kick X.....x...x.....  lowTom ............x.x.
    full  kick X..x..x.X..x..x.  lowTom x...x...x...x...  snare ..o...o.X.o...oo
    bass  R---------------  R.R.R.R.R.R.R.R.
    comp  x-x-x-x-x-x-x-x-  x--x--x-x--x--x-  x-------x-------
    pulse 0.1.2.1.0.1.2.1.  0010020100100201
  6/8, weight 2, 60-92 bpm
    light kick X.....x.....
    light kick X...........  lowTom ......x...xx
    full  kick X.....X...x.  lowTom x.x.x.x.x.x.
    bass  R-----------  R-----R---R-
    comp  x-x-x-x-x-x-  x-----x-----
    pulse 0.1.2.1.2.1.  0.1.2.3.2.1.
  3/4, weight 1, 84-150 bpm
    light kick X...........
    light kick X.......x...  lowTom ..........xx
    full  kick X...x...x...  lowTom ....x...x.xx
    bass  R-----------  R---R---R---
    comp  x---x---x---  x-x-x-x-x-x-
    pulse 0.1.2.1.2.1.`);

export const classical = parseGenre(`
  name         classical
  names        classical, romantic classical, classical chamber music, salon music, classical music, baroque music, chamber music, classical piece, romantic era music, symphonic music, orchestral classical
  moods        elegant, graceful, tender, refined, wistful
  scenes       for a ballroom, for a quiet salon, in a concert hall, with delicate phrasing
  marks        two violins with a viola and a cello, a piano sonata, a harpsichord and strings, a minuet, a small chamber group, counterpoint for two violins, a slow movement for piano, solo violin and piano
  minor        0.45
  ends         ring 0.5, slow 0.5
  width        -8
  feel         swingSteps 2, swing 0, timingSeconds 0.01, touch 8
  melody       density 1.4, syncopation 0.1, leap 4
  major verse  I | V7 | I | V7 / I | IV | V7 | I / I | vi | ii | V7 | I | IV | V7 | I
  major chorus IV | I | V7 | I / I | V7 | vi | IV | I | ii | V7 | I
  major bridge vi | II7 | V | V7 / iii | vi | ii | V7
  minor verse  i | V7 | i | V7 / i | iv | V7 | i / i | bVI | iv | V7
  minor chorus bIII | bVII | i | V7 / iv | i | V7 | i
  minor bridge bVI | bIII | iv | V7
  bass         1, cello
  comp         1, piano, harp, pizzicato
    pulse        0.2, harp, pizzicato
  pad          0.3, slowStrings, strings
  lead         1, piano, violin, flute, clarinet, oboe
  fill         snare
  3/4, weight 4, 84-176 bpm
    bass  R-----------  R---5---5---
    comp  b---u---u---  b---u-..u-..  0-1-2-3-2-1-
    pulse 0-1-2-3-2-1-
  4/4, weight 3, 66-132 bpm
    bass  R-------5-------  R---------------
    comp  0-2-1-2-0-2-1-2-  b---u---b---u---  0123012301230123
    pulse 0-1-2-3-2-1-2-1-
  6/8, weight 2, 60-90 bpm
    bass  R-----5-----  R-----------
    comp  0-1-2-0-1-2-  b-u-u-b-u-u-
    pulse 0-1-2-3-2-1-
  2/4, weight 1.5, 90-140 bpm
    bass  R---5---  R---R---
    comp  b-u-b-u-  b---u---  0-2-1-2-`);
