/**
 * Agent that builds a town. Each week it adds utility plants, zones and the services that /state/advice recommends and
 * the town can pay for. Then it advances the city by a week. It begins a new, paused city, so that every run prints the
 * same; the city that was loaded is saved first.
 *
 * node examples/build-town.mjs [years] [http://127.0.0.1:32123]
 */
const [years = "1", bridge = "http://127.0.0.1:32123"] = process.argv.slice(2);

/** District of each row of blocks. Row 0 is next to the highway. `works` holds industry and utilities. */
const ROWS = ["works", "works", "shops", "homes", "homes", "services", "homes", "homes"];
/** Building that the agent places for each service. */
const SERVICES = {
  garbage: "Landfill Site",
  health: "Medical Clinic",
  fire: "Fire House",
  elementary: "Elementary School",
  death: "Cemetery",
  police: "Police Station",
  leisure: "Regular Park",
  highSchool: "High School",
  university: "University",
};
/**
 * For each utility: its name, its plant, and a share of the supply. If demand reaches this share, the agent builds
 * another plant.
 */
const PLANTS = [
  ["power", "Advanced Wind Turbine", 0.6],
  ["water", "Water Tower", 0.8],
  ["sewage", "Inland Water Treatment Plant 01", 0.8],
];
const RESERVE = 5_000;
/** Calls the bridge. Throws if the bridge rejects the command; a rejected command changes nothing. */
async function call(path, body) {
  const request = body && { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(bridge + path, request).catch(() => {
    console.error(`No city answers at ${bridge}. Start one with: npx carillon serve`);
    process.exit(1);
  });
  const answer = await response.json();
  if (!answer.ok) throw new Error(`${path}: ${answer.error}`);
  return answer;
}

/** Map position of a corner of the grid of blocks. Each block is 80 m by 80 m. */
const corner = (column, row) => ({ x: 400 - 80 * column, z: 460 - 80 * row });
const built = new Set();

/** Builds roads, pipes and power lines along one side of a block. Skips those that were already built. */
async function buildMissing(from, to, ...prefabs) {
  for (const roadPrefab of prefabs) {
    const side = `${roadPrefab} ${from} ${to}`;
    if (built.has(side)) continue;
    built.add(side);
    await call("/commands/build-road", { roadPrefab, start: corner(...from), end: corner(...to) });
  }
}

/** Number of blocks in each row. */
const lengths = ROWS.map(() => 0);

/**
 * Adds a block with roads, a pipe and a power line to the shortest row of a district. Returns two opposite corners
 * of the block.
 */
async function addBlock(district) {
  const rows = [...ROWS.keys()].filter((row) => ROWS[row] === district);
  const [row] = rows.sort((a, b) => lengths[a] - lengths[b]);
  const [near, far] = [lengths[row], ++lengths[row]];
  await buildMissing([near, row], [far, row], "Basic Road", "Water Pipe", "Power Line");
  await buildMissing([near, row + 1], [far, row + 1], "Basic Road");
  for (const each of ROWS.keys()) await buildMissing([far, each], [far, each + 1], "Basic Road");
  return { from: corner(near, row), to: corner(far, row + 1) };
}

const balance = async () => (await call("/state/budget?history=false")).balance;

/**
 * Places a building on a free site near `near`. If there is no such site, adds a block to `district` instead. Returns
 * false if there is not enough money.
 */
async function build(buildingPrefab, near, district) {
  const plan = { buildingPrefab, position: near, suggest: true };
  const { suggestions, constructionCost } = await call("/commands/place-building", plan);
  if ((await balance()) < constructionCost + RESERVE) return false;
  const [site] = suggestions.filter(({ distance }) => distance < 300);
  if (!site) await addBlock(district);
  else await call("/commands/place-building", { buildingPrefab, ...site });
  return true;
}

async function zone(name, district) {
  if ((await balance()) < RESERVE) return;
  await call("/commands/zone-rectangle", { zone: name, ...(await addBlock(district)) });
}

/** Builds a plant for each utility whose supply is nearly used up. Returns false if there is not enough money. */
async function buildPlants() {
  const { totals } = await call("/state/utilities?limit=0");
  for (const [utility, plant, share] of PLANTS) {
    const { supply, demand } = totals[utility];
    if (demand >= share * supply && !(await build(plant, corner(lengths[0], 1), "works"))) return false;
  }
  return true;
}

/** Builds the services that households lack, most urgent first. Returns false if there is not enough money. */
async function buildServices() {
  const { advice } = await call("/state/advice?limit=100");
  for (const { topic, unit, position, price } of advice) {
    if (unit !== "households" || !price.isAffordable) continue;
    if (!(await build(SERVICES[topic], position, "services"))) return false;
  }
  return true;
}

async function zoneByDemand({ residential, commercial, workplace }, citizens) {
  const density = citizens < 300 ? "Low" : "High";
  for (let i = 0; i <= citizens / 1_000 && residential > 5; i++) await zone(`Residential${density}`, "homes");
  if (commercial > 25) await zone(`Commercial${density}`, "shops");
  if (workplace > 20) await zone("Industrial", "works");
}

await call("/commands/new-city", { seed: 1, paused: true });
// Connects the town to both carriageways of the highway. Every new city has this highway.
await call("/commands/build-road", { start: corner(0, 0), end: { x: 422.737, z: 522.957 } });
await call("/commands/build-road", { start: corner(0, 0), end: { x: 423.614, z: 554.945 } });
for (const row of ROWS.keys())
  await buildMissing([0, row], [0, row + 1], "Basic Road", "Water Pipe", "Power Line");
await addBlock("works");
for (let week = 0; week <= 52 * years; week++) {
  const { citizens, demand } = await call("/state/summary");
  if (week % 13 === 0) console.log(`Week ${week}: ${citizens.count} citizens, balance ${await balance()}`);
  if ((await buildPlants()) && (await buildServices())) await zoneByDemand(demand, citizens.count);
  // Without this limit, a slow machine would stop after 30 s, before the end of the week.
  await call("/commands/advance", { weeks: 1, maxSeconds: 600 });
}
