/**
 * What a town expects as it grows: one service after another, in an order that players can foresee. A village lives by its
 * utilities alone. Each service is wished for from a population on, missed a little from there, and in full at twice as many.
 */
import type { Position, ServiceWish } from "../../game.js";
import { distance } from "../../geometry.js";
import type { Coverage } from "../catalogue/building-prefabs.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { serviceAt } from "./services.js";

interface Expectation {
  readonly kind: Coverage;
  /** The population from which people miss the service. */
  readonly fromCitizens: number;
  /** Points of happiness. */
  readonly points: number;
}

/** In the order in which they are wanted. The steps leave a growing town about two months for each service. */
export const EXPECTATIONS: readonly Expectation[] = [
  { kind: "garbage", fromCitizens: 600, points: 4 },
  { kind: "health", fromCitizens: 800, points: 5 },
  { kind: "fire", fromCitizens: 1_000, points: 4 },
  { kind: "elementary", fromCitizens: 1_200, points: 7 },
  { kind: "death", fromCitizens: 1_500, points: 6 },
  { kind: "police", fromCitizens: 1_800, points: 4 },
  { kind: "leisure", fromCitizens: 2_200, points: 8 },
  { kind: "highSchool", fromCitizens: 2_800, points: 5 },
  { kind: "university", fromCitizens: 5_000, points: 5 },
];
const FROM = new Map(EXPECTATIONS.map(({ kind, fromCitizens }) => [kind, fromCitizens]));
/** A wish is known this share of the population early, before it costs growth. */
const FORESIGHT = 0.8;
/** Homes served worse than this wish for more. */
const GOOD_QUALITY = 0.5;
/** Homes that wishes are counted in, evenly spread over the city. */
const SAMPLED_HOMES = 200;
/** Homes farther away than this are of another neighbourhood. */
const NEIGHBOURHOOD_METERS = 600;

/** Share of a service, 0 to 1, that people of a town this size miss without it. */
export function expectation({ citizens }: World, kind: Coverage): number {
  return Math.min(Math.max(citizens.size / (FROM.get(kind) as number) - 1, 0), 1);
}

/** Whether people speak of a service already, or soon would miss it. */
export function isWished({ citizens }: World, kind: Coverage): boolean {
  return citizens.size >= FORESIGHT * (FROM.get(kind) as number);
}

/** The services that people wish for and too few have, the first expected first. */
export function wishesOf(world: World): ServiceWish[] {
  const homes = world.buildings.all().filter(({ householdIds }) => householdIds.length > 0);
  const step = Math.max(1, Math.ceil(homes.length / SAMPLED_HOMES));
  const sample = homes.filter((_, i) => i % step === 0);
  return EXPECTATIONS.filter(({ kind }) => isWished(world, kind)).flatMap(
    ({ kind, fromCitizens, points }) => {
      const lacking = sample.filter(({ position, roadId }) => {
        return (serviceAt(world, position, roadId, kind)?.quality ?? 0) < GOOD_QUALITY;
      });
      if (lacking.length === 0) return [];
      const householdsWithout = step * householdsIn(lacking);
      const shareWithout = householdsIn(lacking) / householdsIn(sample);
      const pointsLost = points * expectation(world, kind) * shareWithout;
      return [{ service: kind, fromCitizens, householdsWithout, pointsLost, place: middleOf(lacking) }];
    },
  );
}

function householdsIn(homes: readonly SimBuilding[]): number {
  return homes.reduce((sum, { householdIds }) => sum + householdIds.length, 0);
}

/** The place with the most of the homes around it. */
function middleOf(homes: readonly SimBuilding[]): Position {
  const away = ({ position }: SimBuilding) =>
    homes.reduce((sum, other) => sum + Math.min(distance(position, other.position), NEIGHBOURHOOD_METERS), 0);
  const [middle] = homes.map((home) => ({ home, meters: away(home) })).sort((a, b) => a.meters - b.meters);
  return (middle as { home: SimBuilding }).home.position;
}
