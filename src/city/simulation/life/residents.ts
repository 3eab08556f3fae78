/**
 * One cycle of a residential building: ageing, education, work, shopping, moves. Grown children move to a free home
 * in their street, each with a partner from outside. Homes fill only if roads connect them to the map edge.
 */
import type { Coverage } from "../catalogue/building-prefabs.js";
import { isActive, longestGraveProblem } from "../fabric/buildings.js";
import {
  AGE_LIMITS,
  addCitizen,
  ageInUnits,
  die,
  leaveParents,
  moveIn,
  moveOut,
  quitJob,
  workforceOf,
} from "../fabric/citizens.js";
import { isConnectedOutside } from "../fabric/reach.js";
import { LONGEST_TRIP_SECONDS } from "../fabric/road-graph.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { Building, Citizen, Household } from "../state/entities.js";
import type { World } from "../state/world.js";
import { expectation } from "./expectations.js";
import { arrivalPercent, happinessOf, happinessParts, leavingPercent } from "./happiness.js";
import { moodOf } from "./individual-differences.js";
import { requestServiceQuality, type Surroundings } from "./services.js";
import { POINTS_PER_DEAD_RESIDENT } from "./stores.js";

const LARGEST_FAMILY = 6;
/** Chances of births and shopping trips, in percent per cycle. */
const BIRTH_PERCENT = 0.9;
const SHOPPING_PERCENT = 60;
/** Chance that a shopper chooses the nearest shop, else the next nearest, and so on. */
const SHOP_PERCENT = 60;
/** A failed shopping trip raises the unmet shopping need of a home by this number. */
const WANT_GROWN = 1;
/** A successful shopping trip lowers the unmet shopping need of a home by this number. */
const WANT_EASED = 4;
/** Chances to graduate, per cycle: half a year on average, at a university a year. */
const LEARNING_PERCENT: Partial<Record<Coverage, number>> = {
  elementary: 0.24,
  highSchool: 0.24,
  university: 0.12,
};
/** Chance of death before old age at full health, in percent per cycle. */
const DEATH_PERCENT = 0.001;
/** Additional chance of death for each point below full health, in percent per cycle. */
const DEATH_PERCENT_PER_POINT = 0.000_1;
/** A free home in a new building is this many times as likely to be taken. */
const NEW_HOME_FACTOR = 16;
/** Time for which a building counts as new. */
const NEW_HOME_FRAMES = 8 * FRAMES_PER_WEEK;

export function updateResidents(world: World, home: Building, around: Surroundings, excessTax: number): void {
  updateHealth(world, home, around);
  home.happiness = happinessOf(happinessParts(world, home, around, excessTax, unemployedShare(world, home)));
  for (const id of [...home.householdIds]) {
    const household = world.households.at(id);
    const leaving = leavingPercent(home.happiness + moodOf(world, household));
    if (world.random.percent(leaving)) moveOut(world, household);
    else updateHousehold(world, home, household);
  }
  fillHomes(world, home);
}

/** Share of unemployed people of working age, 0 to 1. */
export function unemployedShare(world: World, home: Building): number {
  const able = workforceOf(world, home);
  const idle = able.filter(({ workId }) => workId === 0);
  return able.length === 0 ? 0 : idle.length / able.length;
}

/** Moves health towards the level set by health care, air and water. */
function updateHealth(world: World, home: Building, { quality, pollution }: Surroundings): void {
  const doctors = 30 * (quality.get("health") ?? 0) - 20 * expectation(world, "health");
  const target = 65 + doctors - pollution * 0.5 - (home.supply.water ? 0 : 20) - home.garbage * 0.1;
  home.health += (Math.min(Math.max(target, 0), 100) - home.health) * 0.05;
}

function updateHousehold(world: World, home: Building, household: Household): void {
  let parents = 0;
  for (const id of [...household.memberIds]) {
    const citizen = world.citizens.at(id);
    const age = ageInUnits(citizen, world.frame);
    if (diesNow(world, home, age)) {
      die(world, citizen);
      home.bodies = Math.min(home.bodies + POINTS_PER_DEAD_RESIDENT, 100);
      continue;
    }
    learn(world, home, citizen, age);
    if (age >= AGE_LIMITS.retired) quitJob(world, citizen);
    if (isOfParentAge(age) && !isGrownChild(world, household, age)) parents++;
  }
  const { length } = household.memberIds;
  const hasRoom = length > 0 && length < LARGEST_FAMILY && world.citizens.hasRoomFor(1);
  if (parents >= 2 && hasRoom && world.random.percent(BIRTH_PERCENT)) {
    addCitizen(world, household, 0, 0);
    world.statistics.week.births++;
  }
  if (length > 0 && world.random.percent(SHOPPING_PERCENT)) goShopping(world, home);
}

function diesNow(world: World, home: Building, age: number): boolean {
  const ageShare = Math.max((age - AGE_LIMITS.retired) / (AGE_LIMITS.oldest - AGE_LIMITS.retired), 0);
  const illness = DEATH_PERCENT + DEATH_PERCENT_PER_POINT * (100 - home.health);
  return world.random.percent(ageShare ** 2 + illness);
}

function learn(world: World, home: Building, citizen: Citizen, age: number): void {
  const school = schoolFor(citizen.education, age);
  if (!school) return;
  const quality = requestServiceQuality(world, home, school, 1);
  if (quality > 0 && world.random.percent((LEARNING_PERCENT[school] ?? 0) * quality)) citizen.education++;
}

function schoolFor(education: number, age: number): Coverage | null {
  if (education === 0 && age < AGE_LIMITS.tooOldForChildren) return "elementary";
  if (education === 1 && age >= AGE_LIMITS.teen && age < AGE_LIMITS.adult * 2) return "highSchool";
  if (education === 2 && age >= AGE_LIMITS.adult && age < AGE_LIMITS.adult * 3) return "university";
  return null;
}

/** Sends a household to a near shop or beyond the map edge. A failed trip raises the unmet need. */
function goShopping(world: World, home: Building): void {
  const traffic = world.segments.get(home.roadId)?.traffic;
  const shop = traffic?.shopIds
    .map((id) => world.buildings.get(id))
    .find((each) => each && sellsTo(world, each));
  if (shop) {
    shop.visitors++;
    shop.goods--;
  }
  const isSupplied =
    shop !== undefined || (traffic?.edgeSeconds ?? LONGEST_TRIP_SECONDS) < LONGEST_TRIP_SECONDS;
  const change = (isSupplied ? -WANT_EASED : WANT_GROWN) / home.homes;
  home.want = Math.min(Math.max(home.want + change, 0), 100);
}

/** Whether a shopper buys at this shop. The shop must be open, stocked and not full. Then chance decides. */
function sellsTo(world: World, shop: Building): boolean {
  const isOpen = shop.prefab.service === "Commercial" && isActive(shop);
  return isOpen && shop.goods > 0 && shop.visitors < shop.visitorPlaces && world.random.percent(SHOP_PERCENT);
}

/** Moves households into free homes: grown children from the same street first, then newcomers. */
function fillHomes(world: World, home: Building): void {
  if (!isConnectedOutside(world, home) || longestGraveProblem(home, world.frame) !== null) return;
  const isNew = world.frame - home.builtFrame < NEW_HOME_FRAMES;
  const interest = 0.5 + world.demand.residential / 100;
  const chance = interest * arrivalPercent(home.happiness) * (isNew ? NEW_HOME_FACTOR : 1);
  for (let free = home.homes - home.householdIds.length; free > 0; free--) {
    if (!world.random.percent(chance)) continue;
    const child = grownChildOn(world, home.roadId);
    if (child) leaveParents(world, child, home);
    else moveIn(world, home);
  }
}

function grownChildOn(world: World, roadId: number): Citizen | undefined {
  for (const { householdIds } of world.homesOn(roadId)) {
    for (const id of householdIds) {
      const household = world.households.at(id);
      const members = household.memberIds.map((memberId) => world.citizens.at(memberId));
      const child = members.find((member) => isGrownChild(world, household, ageInUnits(member, world.frame)));
      if (child) return child;
    }
  }
  return undefined;
}

/**
 * Whether a household member of this age is a grown child, who may move out. A grown child is old enough to be a
 * parent, and at least AGE_LIMITS.adult younger than the eldest member.
 */
function isGrownChild(world: World, { memberIds }: Household, age: number): boolean {
  const eldest = world.citizens.at(memberIds[0] as number);
  return isOfParentAge(age) && ageInUnits(eldest, world.frame) >= age + AGE_LIMITS.adult;
}

function isOfParentAge(age: number): boolean {
  return age >= AGE_LIMITS.adult && age < AGE_LIMITS.tooOldForChildren;
}
