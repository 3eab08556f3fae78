/** A cycle in the life of a residential building: growing older, learning, working, shopping, coming and going. */
import type { Coverage } from "../catalogue/building-prefabs.js";
import { gravest, isActive } from "../fabric/buildings.js";
import { AGE, addCitizen, ageOf, die, moveIn, moveOut, quitJob, takeJob } from "../fabric/citizens.js";
import { isConnectedOutside } from "../fabric/reach.js";
import type { Citizen, Household, SimBuilding } from "../state/entities.js";
import type { World } from "../state/world.js";
import { requestService, type Surroundings } from "./services.js";

const LARGEST_FAMILY = 5;
const BODY_WEIGHT = 25;
const JOB_TRIES = 4;
const SHOP_TRIES = 3;
/** Chances in percent per cycle. */
const BIRTH_PERCENT = 0.8;
const LEARNING_PERCENT = 6;
const SHOPPING_PERCENT = 60;
const LEAVING_PERCENT = 6;
const ILL_DEATH_PERCENT = 0.3;
/** Below this happiness families think of leaving. */
const UNHAPPY = 25;
/** A family comes to an empty home with this chance at full demand. */
const ARRIVAL_PERCENT = 60;

export function updateResidents(
  world: World,
  home: SimBuilding,
  around: Surroundings,
  excessTax: number,
): void {
  updateHealth(home, around);
  const happiness = happinessOf(home, excessTax);
  home.happiness = happiness;
  for (const id of [...home.householdIds]) {
    const household = world.households.at(id);
    if (happiness < UNHAPPY && world.random.percent(LEAVING_PERCENT)) moveOut(world, household);
    else updateHousehold(world, home, household);
  }
  admitNewcomers(world, home, happiness);
}

/** 0 to 100. */
export function happinessOf(home: SimBuilding, excessTax: number): number {
  const trouble = home.problems.names.length * (home.problems.severity === "warning" ? 6 : 14);
  const happiness =
    60 + (home.health - 50) / 4 + home.landValue / 5 - trouble - home.crime / 5 - excessTax * 4;
  return Math.min(Math.max(happiness, 0), 100);
}

function updateHealth(home: SimBuilding, { quality, pollution }: Surroundings): void {
  const target = 55 + 35 * (quality.get("health") ?? 0) - pollution * 0.6 - (home.supply.water ? 0 : 20);
  home.health += (Math.min(Math.max(target, 0), 100) - home.health) * 0.1;
}

function updateHousehold(world: World, home: SimBuilding, household: Household): void {
  let parents = 0;
  for (const id of [...household.memberIds]) {
    const citizen = world.citizens.at(id);
    const age = ageOf(citizen, world.frame);
    if (diesNow(world, home, age)) {
      die(world, citizen);
      home.bodies = Math.min(home.bodies + BODY_WEIGHT, 100);
      continue;
    }
    learn(world, home, citizen, age);
    if (age >= AGE.retired) quitJob(world, citizen);
    else if (age >= AGE.adult && citizen.workId === 0) seekJob(world, citizen);
    if (age >= AGE.adult && age < AGE.tooOldForChildren) parents++;
  }
  const { length } = household.memberIds;
  const hasRoom = length > 0 && length < LARGEST_FAMILY && world.citizens.hasRoomFor(1);
  if (parents >= 2 && hasRoom && world.random.percent(BIRTH_PERCENT)) {
    addCitizen(world, household, 0, 0);
    world.statistics.week.births++;
  }
  if (length > 0 && world.random.percent(SHOPPING_PERCENT)) goShopping(world);
}

function diesNow(world: World, home: SimBuilding, age: number): boolean {
  const ageShare = (age - AGE.retired) / (AGE.oldest - AGE.retired);
  const percent = (ageShare > 0 ? 3 * ageShare ** 2 : 0) + (home.health < 20 ? ILL_DEATH_PERCENT : 0);
  return percent > 0 && world.random.percent(percent);
}

function learn(world: World, home: SimBuilding, citizen: Citizen, age: number): void {
  const school = schoolFor(citizen.education, age);
  if (!school) return;
  const quality = requestService(world, home, school, 1);
  if (quality > 0 && world.random.percent(LEARNING_PERCENT * quality)) citizen.education++;
}

function schoolFor(education: number, age: number): Coverage | null {
  if (education === 0 && age < AGE.tooOldForChildren) return "elementary";
  if (education === 1 && age >= AGE.teen && age < AGE.adult * 2) return "highSchool";
  if (education === 2 && age >= AGE.adult && age < AGE.adult * 3) return "university";
  return null;
}

function seekJob(world: World, citizen: Citizen): void {
  const { items } = world.workplaces;
  for (let i = 0; i < JOB_TRIES && items.length > 0; i++) {
    const workplace = items[world.random.below(items.length)] as SimBuilding;
    const hasOpening = workplace.workerIds.length < workplace.jobs;
    if (hasOpening && isActive(workplace) && workplace.roadId !== 0) {
      takeJob(citizen, workplace);
      return;
    }
  }
}

function goShopping(world: World): void {
  const { items } = world.shops;
  for (let i = 0; i < SHOP_TRIES && items.length > 0; i++) {
    const shop = items[world.random.below(items.length)] as SimBuilding;
    if (isActive(shop) && shop.goods > 0 && shop.visitors < shop.visitorPlaces) {
      shop.visitors++;
      shop.goods--;
      return;
    }
  }
}

function admitNewcomers(world: World, home: SimBuilding, happiness: number): void {
  const canArrive =
    isConnectedOutside(world, home) && gravest(home, world.frame) === null && happiness >= UNHAPPY;
  const chance = (ARRIVAL_PERCENT * world.demand.residential) / 100;
  for (let free = home.homes - home.householdIds.length; free > 0 && canArrive; free--) {
    if (world.random.percent(chance)) moveIn(world, home);
  }
}
