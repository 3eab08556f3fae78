/**
 * One cycle of a business: workers, customers, wares. A business without power, water or sewage disposal earns
 * nothing and loses workers. Shops sell wares from the city's industry, and wares from the map edge if a road
 * leads there.
 */
import { isSupplied, setProblem } from "../fabric/buildings.js";
import { averageEducation, quitJob, workersOf } from "../fabric/citizens.js";
import { isConnectedOutside } from "../fabric/reach.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { Building } from "../state/entities.js";
import type { World } from "../state/world.js";

/** A new business gets no problem for lack of workers or customers during this time. */
const START_UP_FRAMES = FRAMES_PER_WEEK;
const WARES_PER_WORKER = 2;
/** Maximum number of unsold wares in the whole city. */
const WARES_STORAGE = 20_000;
const SHELF_PER_VISITOR_PLACE = 10;
/** Wares for a shop at the map edge in a cycle, per visitor place. Even a full shop sells fewer. */
const FULL_DELIVERY_SHARE = 4;
const HALF_DELIVERY_SECONDS = 600;
/** Mean education, in percent, that a business of each level requires of its workers. */
const EDUCATION_NEEDED = [0, 0, 15, 35];

export function updateBusiness(world: World, business: Building): void {
  const settled = world.frame - business.builtFrame > START_UP_FRAMES;
  const { frame } = world;
  const filled = business.workerIds.length;
  setProblem(business, "NoWorkers", settled && filled * 4 < business.jobs, frame);
  const needed = EDUCATION_NEEDED[business.prefab.level] ?? 0;
  const isUneducated = settled && filled > 0 && averageEducation(workersOf(world, business)) < needed;
  setProblem(business, "NoEducatedWorkers", isUneducated, frame);
  if (!isSupplied(business)) {
    standStill(world, business);
    return;
  }
  if (business.prefab.service === "Commercial") sellWares(world, business, settled);
  if (business.prefab.service === "Industrial") makeWares(world, business);
}

/** Without power, water or sewage disposal a business makes and sells nothing, and one worker quits per cycle. */
function standStill(world: World, { workerIds }: Building): void {
  const [first] = workerIds;
  if (first !== undefined) quitJob(world, world.citizens.at(first));
}

function sellWares(world: World, shop: Building, settled: boolean): void {
  setProblem(shop, "NoCustomers", settled && shop.visitors * 20 < shop.visitorPlaces, world.frame);
  shop.visitors = Math.floor(shop.visitors / 2);
  const wanted = SHELF_PER_VISITOR_PLACE * shop.visitorPlaces - shop.goods;
  const bought = Math.min(wanted, world.wares + deliveries(world, shop));
  shop.goods += bought;
  world.wares = Math.max(0, world.wares - bought);
  setProblem(shop, "NoGoods", shop.goods === 0, world.frame);
}

/** Wares that lorries bring from the map edge in a cycle. Every ten minutes of travel halve the number. */
function deliveries(world: World, shop: Building): number {
  if (!isConnectedOutside(world, shop)) return 0;
  const seconds = world.segments.at(shop.roadId).traffic.edgeSeconds;
  return Number.isFinite(seconds)
    ? (FULL_DELIVERY_SHARE * shop.visitorPlaces) / 2 ** (seconds / HALF_DELIVERY_SECONDS)
    : 0;
}

function makeWares(world: World, factory: Building): void {
  const made = WARES_PER_WORKER * factory.workerIds.length * factory.prefab.level;
  const full = world.wares + made > WARES_STORAGE;
  const exported = full && isConnectedOutside(world, factory);
  if (!full) world.wares += made;
  setProblem(factory, "NoPlaceforGoods", full && !exported, world.frame);
}
