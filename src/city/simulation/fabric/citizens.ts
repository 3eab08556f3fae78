/** Citizens and households: arrivals, departures and deaths, with their effect on homes and jobs. */
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import type { Building, Citizen, Household } from "../state/entities.js";
import { pick } from "../state/random.js";
import type { World } from "../state/world.js";

/** Citizens age one unit in a week and a half; a life of 240 units lasts about seven years. */
const FRAMES_PER_AGE_UNIT = 1.5 * FRAMES_PER_WEEK;
/** Ages at which life stages begin or end, in age units. */
export const AGE_LIMITS = { teen: 15, adult: 45, tooOldForChildren: 105, retired: 180, oldest: 240 };

/** Cumulative percentages of newcomers with no, elementary and high-school education; the rest have a degree. */
const NEWCOMER_EDUCATION = [62, 88, 98];

const FIRST_NAMES = (
  "Mira Jonas Adele Tomas Ines Ravi Lena Oscar Noor Felix Greta Hugo Ayla Bruno Clara Dario Edith Farid Hana Ivo " +
  "Jana Kofi Livia Marek Nadia Otto Paula Quentin Rosa Stefan Talia Ugo Vera Wanda Yusuf Zora"
).split(" ");
const LAST_NAMES = (
  "Holt Brandt Okafor Silva Novak Lindgren Mori Castle Weber Dunn Ferrara Haas Ivanov Jansen Keller Lowe Marsh " +
  "Nilsson Ortega Pike Quist Reyes Stone Tanaka Ulrich Vance Winter Young Zeller Ashdown Birch Corbin"
).split(" ");

/** Name of a citizen, derived from id and birth, so it is not stored. */
export function citizenName(seed: number, { id, bornFrame }: Citizen): string {
  return `${pick(FIRST_NAMES, seed + 11, id, bornFrame)} ${pick(LAST_NAMES, seed + 12, id, bornFrame)}`;
}

export function ageInUnits(citizen: Citizen, frame: number): number {
  return (frame - citizen.bornFrame) / FRAMES_PER_AGE_UNIT;
}

/** Percentage of new households with two adults. */
const COUPLES_PERCENT = 70;
/** Percentage of new households with children. */
const FAMILIES_PERCENT = 80;

/** A household from outside moves into a home, unless the city is full. */
export function moveIn(world: World, home: Building): void {
  const { random, citizens, households } = world;
  const adults = random.percent(COUPLES_PERCENT) ? 2 : 1;
  const children = random.percent(FAMILIES_PERCENT) ? 1 + random.below(2) : 0;
  if (!citizens.hasRoomFor(adults + children) || !households.hasRoomFor(1)) return;
  const household = foundHousehold(world, home, random.percent(home.landValue) ? 1 : 0);
  const age = AGE_LIMITS.adult + random.below(AGE_LIMITS.retired - AGE_LIMITS.adult);
  for (let i = 0; i < adults; i++) {
    addCitizen(world, household, age, newcomerEducation(random.below(100)));
  }
  for (let i = 0; i < children; i++) addCitizen(world, household, random.below(AGE_LIMITS.adult), 0);
  world.statistics.week.arrivals += adults + children;
}

/** A grown child and a partner from outside move into a home, unless the city is full. */
export function leaveParents(world: World, child: Citizen, home: Building): void {
  const { citizens, households } = world;
  if (!citizens.hasRoomFor(1) || !households.hasRoomFor(1)) return;
  const parents = households.at(child.householdId);
  const household = foundHousehold(world, home, parents.wealth);
  parents.memberIds.splice(parents.memberIds.indexOf(child.id), 1);
  child.householdId = household.id;
  household.memberIds.push(child.id);
  addCitizen(world, household, ageInUnits(child, world.frame), newcomerEducation(world.random.below(100)));
  world.statistics.week.arrivals++;
}

function foundHousehold({ households }: World, home: Building, wealth: number): Household {
  const household = { id: households.nextId(), homeId: home.id, wealth, memberIds: [] };
  households.put(household);
  home.householdIds.push(household.id);
  return household;
}

/** @param age in units of FRAMES_PER_AGE_UNIT frames */
export function addCitizen(world: World, household: Household, age: number, education: number): void {
  const citizen: Citizen = {
    id: world.citizens.nextId(),
    householdId: household.id,
    bornFrame: world.frame - age * FRAMES_PER_AGE_UNIT,
    education,
    workId: 0,
  };
  world.citizens.put(citizen);
  household.memberIds.push(citizen.id);
}

/** Moves a household out of the city. */
export function moveOut(world: World, household: Household): void {
  world.statistics.week.departures += household.memberIds.length;
  for (const id of household.memberIds) {
    quitJob(world, world.citizens.at(id));
    world.citizens.remove(id);
  }
  dissolve(world, household);
}

/** Removes a citizen who has died. Also removes the household of the citizen if nobody is left in it. */
export function die(world: World, citizen: Citizen): void {
  world.statistics.week.deaths++;
  const household = world.households.at(citizen.householdId);
  quitJob(world, citizen);
  world.citizens.remove(citizen.id);
  household.memberIds.splice(household.memberIds.indexOf(citizen.id), 1);
  if (household.memberIds.length === 0) dissolve(world, household);
}

export function takeJob(world: World, citizen: Citizen, workplace: Building): void {
  citizen.workId = workplace.id;
  workplace.workerIds.push(citizen.id);
  world.updateVacancy(workplace);
}

export function quitJob(world: World, citizen: Citizen): void {
  if (citizen.workId === 0) return;
  const workplace = world.buildings.at(citizen.workId);
  workplace.workerIds.splice(workplace.workerIds.indexOf(citizen.id), 1);
  citizen.workId = 0;
  world.updateVacancy(workplace);
}

export function countResidents(world: World, { householdIds }: Building): number {
  return householdIds.reduce((sum, id) => sum + world.households.at(id).memberIds.length, 0);
}

export function isOfWorkingAge(citizen: Citizen, frame: number): boolean {
  const age = ageInUnits(citizen, frame);
  return age >= AGE_LIMITS.adult && age < AGE_LIMITS.retired;
}

export function residentsOf({ households, citizens }: World, { householdIds }: Building): Citizen[] {
  const residents: Citizen[] = [];
  for (const id of householdIds) {
    for (const memberId of households.at(id).memberIds) residents.push(citizens.at(memberId));
  }
  return residents;
}

/** Residents of working age. */
export function workforceOf(world: World, home: Building): Citizen[] {
  return residentsOf(world, home).filter((citizen) => isOfWorkingAge(citizen, world.frame));
}

/** Mean education of the citizens in percent of the highest level; 0 without citizens. */
export function averageEducation(citizens: readonly Citizen[]): number {
  const sum = citizens.reduce((total, { education }) => total + education, 0);
  return citizens.length === 0 ? 0 : (100 * sum) / (3 * citizens.length);
}

export function workersOf(world: World, { workerIds }: Building): Citizen[] {
  return workerIds.map((id) => world.citizens.at(id));
}

function dissolve(world: World, household: Household): void {
  const { householdIds } = world.buildings.at(household.homeId);
  householdIds.splice(householdIds.indexOf(household.id), 1);
  world.households.remove(household.id);
}

function newcomerEducation(draw: number): number {
  const level = NEWCOMER_EDUCATION.findIndex((share) => draw < share);
  return level < 0 ? NEWCOMER_EDUCATION.length : level;
}
