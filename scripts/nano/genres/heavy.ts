/** Genres with loud guitars. */
import { parseGenre } from "./genre.js";

export const rock = parseGenre(`
  name         rock
  names        rock, alternative rock, rock song, guitar rock, indie rock, classic rock, hard rock, rock anthem, 90s alternative rock, grunge, garage rock
  moods        powerful, energetic, raw, anthemic, bold
  scenes       for the open road, for a stadium, with big guitars, full of attitude
  marks        distorted guitars and loud drums, power chords, a screaming guitar solo, a band in a garage, a stadium full of people, a crunchy guitar riff, a loud chorus with cymbals
  minor        0.45
  ends         ring 0.8, fade 0.2
  width        -8
  feel         swingSteps 2, swing 0, timingSeconds 0.006, touch 6
  melody       density 1.3, syncopation 0.4, leap 3
  major verse  I | V | IV | I / I | bVII | IV | I / I | IV | I | V
  major chorus I | V | vi | IV / I | IV | V | V / IV | I | V | I
  major bridge vi | IV | vi | V
  minor verse  i | bVII | bVI | bVII / i | i | bIII | bVII / i | iv | i | bVII
  minor chorus i | bVI | bIII | bVII / i | bIII | iv | bVI / bVI | bVII | i | i
  minor bridge iv | iv | bVI | V
  drums        1, powerKit, standardKit, roomKit
  bass         1, pickedBass, fingerBass
  comp         1, overdrivenGuitar, distortedGuitar, cleanGuitar
    pulse        0.3, cleanGuitar, piano
  pad          0.3, organ, strings
  lead         0.85, overdrivenGuitar, distortedGuitar, sawLead, organ
  fill         snare, highTom, midTom, lowTom
  4/4, weight 5, 96-180 bpm
    light kick X.......x.x.....  snare ....X.......X...  hat  x.x.x.x.x.x.x.x.
    light kick X.....x.x.......  snare ....X.......X...  hat  X.x.X.x.X.x.X.x.
    full  kick X.x.....x.x.....  snare ....X.......X...  ride X.x.X.x.X.x.X.x.
    full  kick X..x..x.X..x....  snare ....X.......X..o  open x...x...x...x...
    bass  R.R.R.R.R.R.R.R.  R-R.R.R-R.R.R.A.  R---R-R-R---R-5-
    comp  x-x-x-x-x-x-x-x-  X-----x-..x-x-x-  X--x--x-X--x--x-
    pulse 0.1.2.1.0.1.2.1.
  6/8, weight 1, 60-84 bpm
    light kick X.........x.  snare ......X.....  hat  x.x.x.x.x.x.
    light kick X...x.......  snare ......X.....  hat  X.x.x.X.x.x.
    full  kick X...x.....x.  snare ......X.....  ride X.x.x.X.x.x.
    bass  R---R-R---R-  R-----5---A-
    comp  x-x-x-x-x-x-  X-----X---x-
    pulse 0.1.2.3.2.1.`);

export const metal = parseGenre(`
  name         metal
  names        metal, heavy metal, thrash metal, doom metal, metal song, death metal, metalcore, power metal, black metal, metal riff, metal music
  moods        aggressive, crushing, furious, menacing, epic
  scenes       with palm-muted riffs, for a battle, with double bass drums, for the heaviest stage
  marks        palm-muted riffs, down-tuned guitars, blast beats, crushing riffs, a wall of distortion, galloping guitars, a mosh pit, growling low guitars
  minor        0.95
  ends         ring 1
  width        -8
  feel         swingSteps 2, swing 0, timingSeconds 0.003, touch 4
  melody       density 1.6, syncopation 0.3, leap 4
  major verse  I | I | bVII | I
  major chorus I | IV | bVII | I
  major bridge IV | IV | bVII | bVII
  minor verse  i | i | bVI | bVII / i | i | i | bVI / i | bIII | iv | i
  minor chorus i | bVI | bIII | bVII / bVI | bVII | i | i / i | bVII | bVI | V
  minor bridge iv | iv | bVI | bVI / i | i | i | i
  drums        1, powerKit
  bass         1, pickedBass, fingerBass
  comp         1, distortedGuitar, overdrivenGuitar
    pulse        0.4, distortedGuitar, cleanGuitar
  pad          0.2, strings, organ
  lead         0.8, distortedGuitar, overdrivenGuitar
  fill         snare, highTom, midTom, lowTom
  4/4, weight 5, 104-178 bpm
    light kick X...x...X...x...  snare ....X.......X...  hat   X.x.X.x.X.x.X.x.
    light kick X.......X.......  snare ........X.......  open  x...x...x...x...
    full  kick XxXxXxXxXxXxXxXx  snare ....X.......X...  ride  X...X...X...X...
    full  kick X.X.X.X.X.X.X.X.  snare ..X...X...X...X.  open  X...X...X...X...
    full  kick XxxXxxXxXxxXxxXx  snare ........X.......  crash X.......X.......
    full  kick X..XX..XX..XX..X  snare ....X.......X...  open  x.x.x.x.x.x.x.x.
    bass  RRRRRRRRRRRRRRRR  R.RRR.RRR.RRR.RR  R-RRR-RRR-RRA-5-
    comp  xxXxxxXxxxXxxxXx  X-xxX-xxX-xxX-x-  X-------X---X---  xxxXxxxXxxxXxxxX
    pulse 0120120120120120  0.1.2.3.2.1.2.3.
  6/8, weight 1, 64-110 bpm
    light kick X.....x.....  snare ......X.....  hat   X.x.x.X.x.x.
    full  kick XxxxxxXxxxxx  snare ......X.....  crash X...........
    bass  R.R.R.R.R.R.  RRRRRRRRRRRR
    comp  x.x.x.X.x.x.  X-----X-----
    pulse 0.1.2.3.2.1.`);

export const punk = parseGenre(`
  name         punk
  names        punk, punk rock, pop punk, hardcore punk, garage punk song, skate punk, punk song, hardcore, street punk, old-school punk, punk anthem
  moods        raw, rebellious, fast and loud, cheeky, furious
  scenes       for a sweaty basement, with three chords, for skateboarding, for jumping around
  marks        three fast chords, a sweaty basement, shouted and fast, sloppy loud guitars, a two-minute song, down-strummed guitars at full speed, gang shouts, angry and short
  minor        0.25
  ends         ring 1
  width        -9
  feel         swingSteps 2, swing 0, timingSeconds 0.009, touch 8
  melody       density 1.2, syncopation 0.3, leap 2
  major verse  I | I | IV | V / I | V | vi | IV / I | IV | I | V
  major chorus I | V | vi | IV / IV | V | I | I / I | IV | V | IV
  major bridge vi | vi | V | V
  minor verse  i | bVI | bVII | i / i | bIII | bVII | iv
  minor chorus bVI | bVII | i | i / i | bVI | bIII | bVII
  minor bridge iv | iv | V | V
  drums        1, powerKit, roomKit
  bass         1, pickedBass
  comp         1, distortedGuitar, overdrivenGuitar
    pulse        0.25, overdrivenGuitar
  pad          0.1, organ
  lead         0.75, overdrivenGuitar, distortedGuitar
  fill         snare, snare, highTom, lowTom
  4/4, weight 1, 150-180 bpm
    light kick X...X...X...X...  snare  ....X.......X...  hat  x.x.x.x.x.x.x.x.
    light kick X.....x.X.....x.  lowTom x.x.x.x.x.x.x.x.
    full  kick X..xX..xX..xX..x  snare  ..X...X...X...X.  open x...x...x...x...
    full  kick X.....X.X.X.....  snare  ....X.......X...  open X.x.X.x.X.x.X.x.
    full  kick X...X...X...X...  snare  ..X...X...X...X.  ride X...X...X...X...
    bass  R.R.R.R.R.R.R.R.  R.R.R.R.R.R.A.A.
    comp  x.x.x.x.x.x.x.x.  X-x-x-x-X-x-x-x-  X-------x-x-x-x-
    pulse 0.2.1.2.0.2.1.2.`);
