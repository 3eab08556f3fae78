/**
 * Phrases that fit any genre. Captions contain many of them, so that a model learns to find the genre's name.
 */
import type { Random } from "../compose/random.js";

const list = (text: string): string[] => text.trim().split(/\s*,\s*/);

/** Adjectives for music of any genre. */
export const commonMoods = list(`
  happy, sad, melancholic, hopeful, tense, angry, gentle, quiet, bittersweet, mysterious, magical, funny, quirky, lonely, nervous,
  triumphant, sleepy, bouncy, silky, gloomy, bright, simple, clean, dirty, rough, modern, vintage, old-fashioned, catchy, strange,
  beautiful, sweet, serious, tired, restless, proud, intimate, spooky, wild, loud, soft, hazy, crisp, cute, evil, thoughtful,
  optimistic, haunting, delicate, punchy, sentimental, clumsy, elegant, raw, dreamy, dark, energetic, calm, warm, cold, epic
`);

/** Purposes of music, and places where it is heard. */
export const musicUses = list(`
  for a podcast intro, for my vlog, for a wedding video, for an advert, for a documentary about whales, for a boss fight,
  for the end credits, for a school play, for a long train ride, for doing the dishes, for my cat, for a birthday party,
  for a fashion show, for a cafe, for a science video, for a slideshow of old photos, for a radio show, for a game menu,
  for a shop window, for my little brother, for a museum, for the car, for a picnic, for a trailer about robots, for yoga,
  to wake up to, to dance to, to cook to, to work to, to clean the house to, to sing along to, to cry to, to think to,
  while it snows, while the city sleeps, on a rainy day, at sunrise, in an empty airport, by the river, in my room,
  after a long day, before the exam, in the middle of August, under the stars, on the last day of school, on a rooftop
`);

/** Topics of a piece. */
export const topics = list(`
  about leaving home, about an old friend, about the sea, about winter, about a lost dog, about growing up, about robots in love,
  about a train that never comes, about my grandmother, about nothing at all, about the moon, about money, about being late,
  about forgiveness, about a garden, about two strangers, about the first day of spring, about courage
`);

/** Wishes for the sound and form of a piece. */
export const soundWishes = list(`
  no vocals, instrumental only, high quality, loopable, clean mix, lots of reverb, dry and close, a strong hook, a slow build,
  a big chorus, a short intro, wide stereo, tape hiss, a bit of swing, well mixed, not too busy, a simple melody, good dynamics,
  a soft ending, old recording, live feel, modern production, minimal arrangement, full arrangement, memorable theme
`);

/** Opening words of a request. */
export const requestOpenings = list(`
  make me, make, I need, I want, give me, can you make, please write, write me, looking for, create, compose, play me, how about,
  I'd like, let's try, generate, do
`);

const syllables = list(
  "ka, lo, mi, ren, ta, vel, so, nu, bar, el, fi, dra, ho, ju, per, zan, qui, wes, tor, ya, gle, um, ix, che",
);

/** An invented title of two to four syllables, without meaning. */
export function inventedName(random: Random): string {
  const name = Array.from({ length: random.integer(2, 4) }, () => random.pick(syllables)).join("");
  return name.charAt(0).toUpperCase() + name.slice(1);
}
