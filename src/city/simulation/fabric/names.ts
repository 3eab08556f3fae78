/** Names that are functions of an id, so that none has to be stored: citizens and streets. */
import { hash } from "../state/random.js";

const FIRST_NAMES =
  "Mira Jonas Adele Tomas Ines Ravi Lena Oscar Noor Felix Greta Hugo Ayla Bruno Clara Dario Edith Farid Hana Ivo " +
  "Jana Kofi Livia Marek Nadia Otto Paula Quentin Rosa Stefan Talia Ugo Vera Wanda Yusuf Zora";
const LAST_NAMES =
  "Holt Brandt Okafor Silva Novak Lindgren Mori Castle Weber Dunn Ferrara Haas Ivanov Jansen Keller Lowe Marsh " +
  "Nilsson Ortega Pike Quist Reyes Stone Tanaka Ulrich Vance Winter Young Zeller Ashdown Birch Corbin";
const STREET_NAMES =
  "Elm Oak Maple Cedar Birch Willow Aspen Linden Hazel Rowan Juniper Poplar Chestnut Alder Mill Bridge Station " +
  "Market Garden Harbour Chapel Meadow Orchard Quarry Ferry Canal Hill Valley North South Lantern Copper Saddler " +
  "Weaver Cooper Fisher Heron Swallow Falcon Badger";
const STREET_KINDS = "Street Road Avenue Lane Way Drive";

const firstNames = FIRST_NAMES.split(" ");
const lastNames = LAST_NAMES.split(" ");
const streetNames = STREET_NAMES.split(" ");
const streetKinds = STREET_KINDS.split(" ");

export function citizenName(seed: number, citizenId: number, bornFrame: number): string {
  const first = pick(firstNames, hash(seed + 11, citizenId, bornFrame));
  return `${first} ${pick(lastNames, hash(seed + 12, citizenId, bornFrame))}`;
}

export function streetName(seed: number, segmentId: number): string {
  return `${pick(streetNames, hash(seed + 13, segmentId, 0))} ${pick(streetKinds, hash(seed + 14, segmentId, 0))}`;
}

function pick(words: readonly string[], h: number): string {
  return words[h % words.length] as string;
}
