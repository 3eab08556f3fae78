/**
 * An agent that builds a town: it lays streets, then looks every two seconds at what the city wants and complains of.
 *
 *   node examples/build-town.mjs [seconds] [http://127.0.0.1:32123]
 */
import { setTimeout as sleep } from "node:timers/promises";

const [seconds = "180", bridge = "http://127.0.0.1:32123"] = process.argv.slice(2);

/** Nodes of the two carriageways of the highway that every new city has. */
const HIGHWAY = [
  { x: 422.737, z: 522.957 },
  { x: 423.614, z: 554.945 },
];
const AVENUE_X = 400;
const STREETS_Z = [300, 180, 60, -60];
const CORNERS_X = [160, 240, 320, AVENUE_X, 480, 560, 640];
const ZONES = { residential: "ResidentialLow", commercial: "CommercialLow", workplace: "Industrial" };
/** Homes first, then work and shops for those who live there. */
const turns = ["residential", "workplace", "residential", "commercial"];
/** What ends a problem. */
const CURES = {
  Electricity: "Wind Turbine",
  Water: "Water Tower",
  Sewage: "Inland Water Treatment Plant 01",
  Garbage: "Landfill Site",
  Death: "Cemetery",
  Crime: "Police Station",
  Fire: "Fire House",
};

/** The answer of the bridge; a refused command says why and changes nothing. */
async function call(path, body) {
  const request = body && { method: "POST", body: JSON.stringify(body) };
  const answer = await (await fetch(bridge + path, request)).json();
  if (!answer.ok) console.error(`${path}: ${answer.error}`);
  return answer;
}

/** A road with a pipe below and a power line above it, node by node, so that whatever crosses is joined. */
async function layStreet(points) {
  for (const [index, end] of points.slice(1).entries()) {
    for (const roadPrefab of ["Basic Road", "Water Pipe", "Power Line"]) {
      await call("/commands/build-network", { roadPrefab, start: points[index], end });
    }
  }
}

let sites = 0;

/** Each service gets a piece of street of its own, west of the town; the middle is for people. */
async function place(buildingPrefab) {
  const [row, column] = [sites % STREETS_Z.length, Math.floor(sites / STREETS_Z.length)];
  sites++;
  const [x, z] = [CORNERS_X[0] - 100 * column, STREETS_Z[row]];
  await layStreet([
    { x, z },
    { x: x - 100, z },
  ]);
  await call("/commands/place-building", { buildingPrefab, position: { x: x - 50, z: z - 45 } });
}

const town = { x: AVENUE_X, z: STREETS_Z[0] };
for (const exit of HIGHWAY) await call("/commands/build-road", { start: town, end: exit });
await layStreet(STREETS_Z.map((z) => ({ x: AVENUE_X, z })));
for (const z of STREETS_Z) await layStreet(CORNERS_X.map((x) => ({ x, z })));

for (const need of ["Electricity", "Water", "Sewage", "Garbage"]) await place(CURES[need]);
await call("/commands/set-simulation-speed", { speed: 3 });

const plots = STREETS_Z.flatMap((z) => CORNERS_X.slice(1).map((x) => ({ x: x - 40, z })));
const endMs = Date.now() + Number(seconds) * 1000;
while (Date.now() < endMs) {
  const demand = await call("/state/demand");
  const wanted = turns[0];
  const center = demand[wanted] > 10 ? plots.shift() : undefined;
  turns.push(turns.shift());
  if (center) {
    await call("/commands/set-zone", { zone: ZONES[wanted], center, radius: 40, preserveOccupied: false });
  }
  const { countsByProblem } = await call("/state/problems?limit=1");
  const [problem] = Object.keys(countsByProblem).filter((name) => CURES[name]);
  if (problem) await place(CURES[problem]);
  const { citizens, gameTime } = await call("/state/summary");
  const done = [center && `zoned ${ZONES[wanted]}`, problem && `built ${CURES[problem]} against ${problem}`];
  console.log(`${gameTime}: ${citizens.count} citizens ${done.filter(Boolean).join(", ")}`);
  await sleep(2000);
}
