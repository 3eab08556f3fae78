/** A cycle in the life of a business: workers, customers, wares. */
import { setProblem } from "../fabric/buildings.js";
import { averageEducation } from "../fabric/citizens.js";
import { isConnectedOutside } from "../fabric/reach.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";

/** A new business is given this long to find workers and customers. */
const START_UP_FRAMES = FRAMES_PER_WEEK;
const WARES_PER_WORKER = 2;
/** More unsold wares than this find no place in the city. */
const WARES_STORAGE = 20_000;
const SHELF_PER_VISITOR_PLACE = 10;
/** Mean education in percent that the jobs of a level ask for. */
const EDUCATION_NEEDED = [0, 0, 15, 35];

export function updateBusiness(world: World, business: SimBuilding): void {
  const settled = world.frame - business.builtFrame > START_UP_FRAMES;
  const { frame } = world;
  const filled = business.workerIds.length;
  setProblem(business, "NoWorkers", settled && filled * 4 < business.jobs, frame);
  const needed = EDUCATION_NEEDED[business.prefab.level] ?? 0;
  const isUneducated = settled && filled > 0 && averageEducation(world, business.workerIds) < needed;
  setProblem(business, "NoEducatedWorkers", isUneducated, frame);
  if (business.prefab.service === "Commercial") sellWares(world, business, settled);
  if (business.prefab.service === "Industrial") makeWares(world, business);
}

function sellWares(world: World, shop: SimBuilding, settled: boolean): void {
  setProblem(shop, "NoCustomers", settled && shop.visitors * 20 < shop.visitorPlaces, world.frame);
  shop.visitors = Math.floor(shop.visitors / 2);
  const wanted = SHELF_PER_VISITOR_PLACE * shop.visitorPlaces - shop.goods;
  const bought = isConnectedOutside(world, shop) ? wanted : Math.min(wanted, world.wares);
  shop.goods += bought;
  world.wares = Math.max(0, world.wares - bought);
  setProblem(shop, "NoGoods", shop.goods === 0, world.frame);
}

function makeWares(world: World, factory: SimBuilding): void {
  const made = WARES_PER_WORKER * factory.workerIds.length * factory.prefab.level;
  const full = world.wares + made > WARES_STORAGE;
  const exported = full && isConnectedOutside(world, factory);
  if (!full) world.wares += made;
  setProblem(factory, "NoPlaceforGoods", full && !exported, world.frame);
}
