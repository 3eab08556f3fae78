/** All genres. Their order determines the genre labels in training. */
import { funk, hipHop, latin, reggae } from "./beats.js";
import { drumAndBass, house, synthwave, techno, trance } from "./electronic.js";
import type { Genre } from "./genre.js";
import { metal, punk, rock } from "./heavy.js";
import { bossaNova, jazz, lofi } from "./jazz.js";
import { ambient, cinematic, classical } from "./orchestral.js";
import { blues, country, folk, soul } from "./roots.js";

export const genres: readonly Genre[] = [
  ...[ambient, bossaNova, cinematic, classical, folk, funk, house, jazz, lofi, reggae, rock, synthwave],
  ...[blues, country, drumAndBass, hipHop, latin, metal, punk, soul, techno, trance],
];

/** @throws RangeError for an unknown name */
export function genreNamed(name: string): Genre {
  const genre = genres.find((candidate) => candidate.name === name);
  if (genre === undefined) throw new RangeError(`${name} is no genre`);
  return genre;
}
