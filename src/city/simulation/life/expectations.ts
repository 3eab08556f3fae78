/**
 * Services that a growing town expects, one after another in a fixed order. A village needs only utilities.
 * Each service has a population threshold. Above the threshold, homes without the service lose happiness. The
 * loss is largest from twice the threshold on.
 */
import { distance, type Position } from "../../geometry.js";
import type { Coverage } from "../catalogue/building-prefabs.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";
import { serviceAt } from "./services.js";

/** A service that some homes lack and that a town of this size expects or will expect soon. */
export interface MissingService {
  readonly service: Coverage;
  /** From this population on, a town without the service grows more slowly. */
  readonly fromCitizens: number;
  /** Households without the service, estimated from a sample of the homes. */
  readonly householdsWithout: number;
  /** Points of happiness lost on average; 0 before the town expects the service. */
  readonly pointsLost: number;
  /** The most central home without the service. */
  readonly place: Position;
}

interface Expectation {
  readonly kind: Coverage;
  /** From this population on, homes without the service lose happiness. */
  readonly fromCitizens: number;
  /** Maximum number of points of happiness that a home loses without the service. */
  readonly points: number;
}

/** Services in this order. A growing town has about two months from one threshold to the next. */
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
/** A service becomes a wish at this share of its population threshold, before the lack costs happiness. */
const FORESIGHT = 0.8;
/** A home lacks a service if the quality of the service at the home is lower than this value. */
const GOOD_QUALITY = 0.5;
/** Number of homes that are examined, spread evenly over the list of homes. */
const SAMPLED_HOMES = 200;
/** The search for the most central home limits each distance to this value. */
const NEIGHBOURHOOD_METERS = 600;

/** How strongly a town of this size expects a service: 0 up to the population threshold, 1 from twice as many on. */
export function expectation({ citizens }: World, kind: Coverage): number {
  return Math.min(Math.max(citizens.size / (FROM.get(kind) as number) - 1, 0), 1);
}

/** Points of happiness that a home without the service loses in a town of this size. */
export function expectedPoints(world: World, kind: Coverage): number {
  const points = EXPECTATIONS.find((each) => each.kind === kind)?.points ?? 0;
  return points * expectation(world, kind);
}

/** Whether a service is listed as a wish in a town of this size. */
export function isWished({ citizens }: World, kind: Coverage): boolean {
  return citizens.size >= FORESIGHT * (FROM.get(kind) as number);
}

/** Services that homes lack and that the town expects now or soon, sorted by population threshold. Computed in steps. */
export function* missingServicesInPieces(world: World): Generator<void, MissingService[]> {
  const homes = world.buildings.all().filter(({ householdIds }) => householdIds.length > 0);
  const step = Math.max(1, Math.ceil(homes.length / SAMPLED_HOMES));
  const sample = homes.filter((_, i) => i % step === 0);
  const missing: MissingService[] = [];
  for (const { kind, fromCitizens, points } of EXPECTATIONS) {
    if (!isWished(world, kind)) continue;
    const lacking: Building[] = [];
    for (const home of sample) {
      if ((serviceAt(world, home.position, home.roadId, kind)?.quality ?? 0) < GOOD_QUALITY)
        lacking.push(home);
      yield;
    }
    if (lacking.length === 0) continue;
    const householdsWithout = step * householdsIn(lacking);
    const shareWithout = householdsIn(lacking) / Math.max(householdsIn(sample), 1);
    const pointsLost = points * expectation(world, kind) * shareWithout;
    missing.push({ service: kind, fromCitizens, householdsWithout, pointsLost, place: middleOf(lacking) });
  }
  return missing;
}

function householdsIn(homes: readonly Building[]): number {
  return homes.reduce((sum, { householdIds }) => sum + householdIds.length, 0);
}

/** Position of the most central one of these homes. */
function middleOf(homes: readonly Building[]): Position {
  const away = ({ position }: Building) =>
    homes.reduce((sum, other) => sum + Math.min(distance(position, other.position), NEIGHBOURHOOD_METERS), 0);
  const [middle] = homes.map((home) => ({ home, meters: away(home) })).sort((a, b) => a.meters - b.meters);
  return (middle as { home: Building }).home.position;
}
