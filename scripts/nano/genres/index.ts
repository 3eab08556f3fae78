/** All genres, in the order of their labels. */
import { ambient } from "./ambient.js";
import { hipHop, latin } from "./beats.js";
import { bossaNova } from "./bossa-nova.js";
import { cinematic } from "./cinematic.js";
import { classical } from "./classical.js";
import { drumAndBass, techno, trance } from "./electronic.js";
import { folk } from "./folk.js";
import { funk } from "./funk.js";
import type { Genre } from "./genre.js";
import { metal, punk } from "./heavy.js";
import { house } from "./house.js";
import { jazz } from "./jazz.js";
import { lofi } from "./lofi.js";
import { reggae } from "./reggae.js";
import { rock } from "./rock.js";
import { blues, country, soul } from "./roots.js";
import { synthwave } from "./synthwave.js";

export const genres: readonly Genre[] = [
  ambient,
  bossaNova,
  cinematic,
  classical,
  folk,
  funk,
  house,
  jazz,
  lofi,
  reggae,
  rock,
  synthwave,
  blues,
  country,
  drumAndBass,
  hipHop,
  latin,
  metal,
  punk,
  soul,
  techno,
  trance,
];

/** @throws RangeError for an unknown name */
export function genreNamed(name: string): Genre {
  const genre = genres.find((candidate) => candidate.name === name);
  if (genre === undefined) throw new RangeError(`${name} is no genre`);
  return genre;
}
