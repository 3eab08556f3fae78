/** Messages of citizens and of the city. Each has a cause in the simulation. */
import type { ProblemName } from "../../terms.js";
import type { BuildingPrefab, Coverage } from "../catalogue/building-prefabs.js";
import { streetNameOf } from "../fabric/buildings.js";
import { citizenName } from "../fabric/citizens.js";
import { isConnectedOutside } from "../fabric/reach.js";
import { FRAMES_PER_WEEK } from "../state/calendar.js";
import { runningNet } from "../state/economy.js";
import type { Building, Citizen, CitizenMessage } from "../state/entities.js";
import type { World } from "../state/world.js";
import { cheapestProvider, priceOf } from "./affordability.js";
import { isWished } from "./expectations.js";
import type { Surroundings } from "./services.js";

/** Minimum time between messages of the same kind. */
const QUIET_FRAMES = FRAMES_PER_WEEK / 2;
/** Minimum time between messages about high demand. */
const DEMAND_QUIET_FRAMES = 4 * FRAMES_PER_WEEK;
/** Chance per cycle that an affected citizen complains. */
const COMPLAINT_PERCENT = 25;
/** Chance per cycle that a content household expresses a wish. */
const WISH_PERCENT = 3;
/** Pollution level above which citizens complain about bad air. */
const FOUL_AIR = 30;
const HIGH_DEMAND = 80;
/** Populations at which the city gets a reward. Many small rewards, because a large one would cause a jump in growth. */
const MILESTONES = [100, 1_000, 10_000].flatMap((unit) =>
  [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8].map((step) => step * unit),
);
/** Reward at a milestone for each citizen since the previous one. The game rewards growth, too. */
const REWARD_PER_CITIZEN = 50;

/** Alternative wordings of a message. `@` stands for the street. */
type Saying = readonly [messageId: string, ...texts: string[]];

/** Texts of complaints, by problem. */
const COMPLAINTS: Partial<Record<ProblemName, Saying>> = {
  Electricity: [
    "CHIRP_NO_ELECTRICITY",
    "The lights are out on @.",
    "Cooking by candle again. Power for @, please?",
  ],
  Water: ["CHIRP_NO_WATER", "No water again on @.", "Turned the tap on @: nothing but air."],
  Sewage: ["CHIRP_SEWAGE", "The drains of @ are backing up.", "@ smells. You know of what."],
  Garbage: [
    "CHIRP_TRASH_PILING_UP",
    "Nobody collects the rubbish on @.",
    "The bins of @ have bins of their own by now.",
  ],
  Death: ["CHIRP_DEAD_PILING_UP", "Grandfather still lies at home. Where is the hearse for @?"],
  Crime: ["CHIRP_HIGH_CRIME", "Third break-in on @ this month.", "I lock twice on @ now."],
  Fire: ["CHIRP_FIRE_HAZARD", "Smoke over @! Is anybody coming?"],
  TaxesTooHigh: [
    "CHIRP_LOW_HAPPINESS",
    "With these taxes we cannot stay on @.",
    "Half my wage goes to the city. What for?",
  ],
  NoWorkers: ["CHIRP_INDUSTRIAL_DEMAND", "We are hiring on @. Nobody comes."],
  NoCustomers: ["CHIRP_RESIDENTIAL_DEMAND", "Not one customer on @ today."],
  NoGoods: ["CHIRP_COMMERCIAL_DEMAND", "Our shelves on @ are empty."],
};

/** Texts of wishes, by the service that is missing. */
const WISHES: readonly (readonly [Coverage, Saying])[] = [
  ["health", ["CHIRP_NO_HEALTHCARE", "The nearest doctor is nowhere near @.", "A clinic would do @ good."]],
  ["elementary", ["CHIRP_NO_SCHOOLS", "The children of @ teach each other. A school, please?"]],
  [
    "leisure",
    ["CHIRP_NEED_MORE_PARKS", "Not one bench under a tree around @.", "The children of @ play in the road."],
  ],
];

const FOUL_AIR_SAYING: Saying = ["CHIRP_POLLUTION", "The air on @ makes the washing grey."];
const RISEN_SAYING: Saying = [
  "CHIRP_HAPPY_PEOPLE",
  "@ is coming along nicely.",
  "New paint, new roof. I like @.",
];
const RISEN_HIGH_SAYING: Saying = ["CHIRP_HIGH_TECH_LEVEL", "They rebuilt our house on @. Look at it now!"];

/** Texts that explain why a building was abandoned, by reason. */
const CAUSES: Partial<Record<ProblemName | "NoDemand", string>> = {
  Electricity: "after weeks without power",
  Water: "after weeks without water",
  Sewage: "because nothing drained",
  RoadNotConnected: "because no road leads there",
  Garbage: "under heaps of rubbish",
  Death: "because nobody fetched the dead",
  TaxesTooHigh: "because of the taxes",
  NoWorkers: "for want of workers",
  NoCustomers: "for want of customers",
  NoGoods: "for want of wares",
  NoDemand: "because nobody wanted to move in",
};

/** Messages about newly opened buildings, by the name of the prefab or service. */
const OPENINGS: Readonly<Record<string, string>> = {
  Hospital: "CHIRP_NEW_HOSPITAL",
  "Medical Clinic": "CHIRP_NEW_HOSPITAL",
  "Medical Center": "CHIRP_NEW_HOSPITAL",
  "Fire House": "CHIRP_NEW_FIRE_STATION",
  "Fire Station": "CHIRP_NEW_FIRE_STATION",
  "Police Headquarters": "CHIRP_NEW_POLICE_HQ",
  University: "CHIRP_NEW_UNIVERSITY",
  "Wind Turbine": "CHIRP_NEW_WIND_OR_SOLAR_PLANT",
  "Advanced Wind Turbine": "CHIRP_NEW_WIND_OR_SOLAR_PLANT",
  "Solar Power Plant": "CHIRP_NEW_WIND_OR_SOLAR_PLANT",
  "Regular Plaza": "CHIRP_NEW_PLAZA",
  "Expensive Plaza": "CHIRP_NEW_PLAZA",
  Beautification: "CHIRP_NEW_PARK",
  Monument: "CHIRP_NEW_MONUMENT",
};

/** Posts a complaint about one of a building's problems, with a certain probability. */
export function maybePostComplaint(world: World, building: Building): void {
  const { names } = building.problems;
  if (names.length === 0 || !world.random.percent(COMPLAINT_PERCENT)) return;
  const complaint = COMPLAINTS[names[world.random.below(names.length)] as ProblemName];
  if (complaint) speak(world, building, complaint);
}

/**
 * Posts a complaint about pollution and a wish for a missing service that the city can pay for, with a certain
 * probability.
 */
export function maybePostWish(world: World, building: Building, { quality, pollution }: Surroundings): void {
  if (building.householdIds.length === 0 || !world.random.percent(WISH_PERCENT)) return;
  if (pollution > FOUL_AIR) speak(world, building, FOUL_AIR_SAYING);
  const surplus = runningNet(world.ledger.history.at(-1)?.amounts ?? {});
  const missing = WISHES.filter(([kind]) => {
    const isMissing = isWished(world, kind) && (quality.get(kind) ?? 0) === 0;
    return isMissing && priceOf(world, cheapestProvider(kind), surplus).isAffordable;
  });
  const chosen = missing[world.random.below(Math.max(missing.length, 1))];
  if (chosen) speak(world, building, chosen[1]);
}

/** Posts the praise of an occupant whose building leveled up. */
export function postPraise(world: World, building: Building): void {
  speak(world, building, building.prefab.level >= 3 ? RISEN_HIGH_SAYING : RISEN_SAYING);
}

export function reportAbandoned(world: World, building: Building, reason: ProblemName | "NoDemand"): void {
  const text = `A building on ${streetNameOf(world, building)} was given up ${CAUSES[reason] ?? "in the end"}.`;
  postCityMessage(world, "CHIRP_ABANDONED_BUILDINGS", text);
}

export function reportBurnedDown(world: World, building: Building): void {
  postCityMessage(world, "CHIRP_FIRE_HAZARD", `A building on ${streetNameOf(world, building)} burned down.`);
}

export function reportOpening(world: World, prefab: BuildingPrefab): void {
  const messageId = OPENINGS[prefab.name] ?? OPENINGS[prefab.service];
  if (messageId) postCityMessage(world, messageId, `Newly opened: ${prefab.displayName}.`);
}

export function reportFirstRoad(world: World, streetName: string): void {
  postCityMessage(world, "CHIRP_RANDOM", `A first road was opened: ${streetName}.`);
}

/** Reports milestones, high demand and missing road access. Called once a cycle. */
export function reportCity(world: World): void {
  const reached = MILESTONES.findLast((milestone) => world.citizens.size >= milestone) ?? 0;
  if (reached > world.milestone) {
    const reward = REWARD_PER_CITIZEN * (reached - world.milestone);
    world.milestone = reached;
    world.ledger.book("Milestones", reward);
    const text = `The city has grown to ${reached} citizens, and receives ${reward} from the state.`;
    postCityMessage(world, "CHIRP_MILESTONE_REACHED", text);
  }
  if (world.citizens.size === 0) {
    reportCutOff(world);
    return;
  }
  const { residential, commercial, workplace } = world.demand;
  const lacks = (bar: number, messageId: string, text: string) => {
    if (bar >= HIGH_DEMAND) postCityMessage(world, messageId, text, DEMAND_QUIET_FRAMES);
  };
  lacks(residential, "CHIRP_RESIDENTIAL_DEMAND", "Families are looking for homes here.");
  lacks(commercial, "CHIRP_COMMERCIAL_DEMAND", "The town could do with more shops.");
  lacks(workplace, "CHIRP_INDUSTRIAL_DEMAND", "Many are looking for work here.");
}

/** Announces that homes have no road to the map edge, so nobody can move in. */
function reportCutOff(world: World): void {
  const cutOff = world.buildings.all().some((home) => home.homes > 0 && !isConnectedOutside(world, home));
  const text = "Families would come, but no road leads here from the map edge.";
  if (cutOff) postCityMessage(world, "CHIRP_RESIDENTIAL_DEMAND", text);
}

function speak(world: World, building: Building, [messageId, ...texts]: Saying): void {
  const speaker = somebodyIn(world, building);
  if (!speaker || world.board.isQuiet(messageId, world.frame)) return;
  const text = (texts[world.random.below(texts.length)] as string).replace(
    "@",
    streetNameOf(world, building),
  );
  const message: CitizenMessage = {
    type: "CitizenMessage",
    senderName: citizenName(world.seed, speaker),
    senderId: speaker.id,
    text: text.charAt(0).toUpperCase() + text.slice(1),
    messageId,
    keyId: "",
    tag: "",
  };
  world.board.post(message, world.frame + QUIET_FRAMES);
}

/** Posts a message of the city, unless one of the same kind was posted recently. */
export function postCityMessage(world: World, messageId: string, text: string, quietFrames = QUIET_FRAMES) {
  if (world.board.isQuiet(messageId, world.frame)) return;
  const sender = { type: "GenericMessage", senderName: "City", senderId: 0 } as const;
  const message = { ...sender, text, messageId, senderKey: "", randomId: world.random.below(100) };
  world.board.post(message, world.frame + quietFrames);
}

function somebodyIn(world: World, building: Building): Citizen | undefined {
  const household = building.householdIds[0];
  const id = household ? world.households.at(household).memberIds[0] : building.workerIds[0];
  return id === undefined ? undefined : world.citizens.at(id);
}
