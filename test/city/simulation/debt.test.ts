import { expect } from "chai";
import { setBuildingActive } from "../../../src/city/commands/buildings.js";
import { budgetOf } from "../../../src/city/simulation/life/finance.js";
import { FRAMES_PER_CYCLE, FRAMES_PER_WEEK } from "../../../src/city/simulation/state/calendar.js";
import type { Building } from "../../../src/city/simulation/state/entities.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { FLAG } from "../../../src/city/terms.js";
import { bridgeForEach } from "../bridge.js";
import {
  advance,
  fingerprint,
  homesOnly,
  newCity,
  place,
  restoreSnapshot,
  servedTown,
  settleByForce,
} from "./towns.js";

/** Spends or earns money, so that the city has this balance. */
function setBalance(city: World, balance: number): void {
  city.ledger.book("Construction", city.ledger.balanceCents / 100 - balance);
}

const closedNames = (city: World) =>
  city.buildings
    .all()
    .filter(({ closedForDebt }) => closedForDebt)
    .map(({ prefab }) => prefab.name);
const isOpen = (city: World, name: string) =>
  city.buildings.all().some(({ prefab, switchedOff }) => prefab.name === name && !switchedOff);

/** Ends the current week at once. */
function endWeek(city: World): void {
  city.frame += FRAMES_PER_WEEK - 1 - (city.frame % FRAMES_PER_WEEK);
  advance(city, 1);
}

/** A town of 1,000 citizens whose landfill and clinic are expected, and whose university is not. */
function townOfThousand(): World {
  const city = newCity();
  homesOnly(city);
  settleByForce(city, 1_000);
  place(city, "Landfill Site", 0, -200);
  place(city, "Medical Clinic", 100, -200);
  place(city, "University", 200, -200);
  advance(city, FRAMES_PER_CYCLE);
  return city;
}

describe("a city in debt", () => {
  let saved = "";
  let city: World;
  before(() => {
    saved = fingerprint(townOfThousand());
  });
  beforeEach(() => {
    city = restoreSnapshot(JSON.parse(saved));
  });

  it("closes one service a week, the one worth least for its upkeep, and says which", () => {
    setBalance(city, -9_000);
    endWeek(city);
    expect(closedNames(city)).to.deep.equal([]);
    setBalance(city, -12_000);
    endWeek(city);
    expect(closedNames(city)).to.deep.equal(["University"]);
    expect(city.board.messages.at(-1)?.text).to.match(
      /^The city is bankrupt: it owes 1\d{4} and closes building \d+, a University\. The state offers 50000, once\.$/,
    );
    expect(budgetOf(city)).to.deep.include({ servicesClosedForDebt: 1 });
  });

  it("leaves a service inactive that burned down while it was closed", () => {
    setBalance(city, -12_000);
    endWeek(city);
    const university = city.buildings.all().find(({ closedForDebt }) => closedForDebt) as Building;
    university.flags |= FLAG.BurnedDown;
    setBalance(city, 100_000);
    endWeek(city);
    expect(university.closedForDebt).to.equal(false);
    expect(university.flags & FLAG.Active).to.equal(0);
  });

  it("closes no service while the surplus repays the debt in half a year", () => {
    city.ledger.book("Residential", 1_500);
    setBalance(city, -12_000);
    endWeek(city);
    expect(closedNames(city)).to.deep.equal([]);
    expect(city.board.messages.at(-1)?.text).to.match(/owes 1\d{4}\. The state offers/);
  });

  it("never closes a plant that is needed, and closes a spare one", () => {
    city.unlimitedMoney = true;
    const id = place(city, "Nuclear Power Plant", 80, 100);
    city.unlimitedMoney = false;
    setBalance(city, -300_000);
    for (let week = 0; week < 10; week++) {
      endWeek(city);
      advance(city, 2 * FRAMES_PER_CYCLE);
    }
    expect(city.buildings.at(id).closedForDebt).to.equal(true);
    expect(closedNames(city)).to.include.members(["University", "Medical Clinic", "Landfill Site"]);
    expect(isOpen(city, "Water Tower") && isOpen(city, "Inland Water Treatment Plant 01")).to.equal(true);
    expect(city.buildings.all().filter(({ supply, homes }) => homes > 0 && !supply.power)).to.deep.equal([]);
  });

  it("reopens services, the most needed first, once the balance covers four weeks of their upkeep", () => {
    setBalance(city, -300_000);
    for (let week = 0; week < 3; week++) endWeek(city);
    expect(closedNames(city)).to.have.members(["University", "Medical Clinic", "Landfill Site"]);
    const reopenedAt = (balance: number) => {
      setBalance(city, balance);
      endWeek(city);
      return ["Landfill Site", "Medical Clinic", "University"].filter((name) => isOpen(city, name));
    };
    expect(reopenedAt(1_300)).to.deep.equal([]);
    expect(reopenedAt(2_500)).to.deep.equal(["Landfill Site"]);
    expect(city.board.messages.at(-1)?.text).to.match(
      /^The city can pay again and reopens Landfill Site \d+\.$/,
    );
    expect(reopenedAt(8_000)).to.deep.equal(["Landfill Site", "Medical Clinic"]);
    expect(reopenedAt(20_000)).to.deep.equal(["Landfill Site", "Medical Clinic", "University"]);
  });

  it("leaves a building off that a command switched off, even if debt had closed it", () => {
    const find = (name: string) => city.buildings.all().find(({ prefab }) => prefab.name === name);
    const [clinic, university] = [find("Medical Clinic"), find("University")];
    setBuildingActive.act(city, { id: clinic?.id as number, active: false });
    setBalance(city, -12_000);
    endWeek(city);
    expect(university?.closedForDebt).to.equal(true);
    setBuildingActive.act(city, { id: university?.id as number, active: false });
    setBalance(city, 100_000);
    endWeek(city);
    expect([clinic, university].map((each) => each?.switchedOff)).to.deep.equal([true, true]);
  });

  it("saves which services are closed", () => {
    setBalance(city, -12_000);
    endWeek(city);
    const loaded = restoreSnapshot(JSON.parse(fingerprint(city)));
    expect(closedNames(loaded)).to.deep.equal(["University"]);
    expect(fingerprint(loaded)).to.equal(fingerprint(city));
    for (const each of [city, loaded]) {
      setBalance(each, 100_000);
      endWeek(each);
    }
    expect(closedNames(loaded)).to.deep.equal([]);
    expect(fingerprint(loaded)).to.equal(fingerprint(city));
  });

  it("is out of debt within a year if it stops spending @slow", () => {
    city = servedTown();
    for (const x of [-300, -500, -700]) place(city, "Police Headquarters", x, -200);
    advance(city, 26 * FRAMES_PER_WEEK);
    city.unlimitedMoney = false;
    setBalance(city, -12_000);
    const balances = Array.from({ length: 52 }, () => {
      advance(city, FRAMES_PER_WEEK);
      return Math.round(budgetOf(city).balance);
    });
    expect(Math.max(...balances), `${balances}`).to.be.greaterThan(0);
    expect(city.citizens.size).to.be.greaterThan(500);
  });
});

describe("the bridge to a city in debt", () => {
  const bridge = bridgeForEach({ map: "highway" });

  it("offers one bailout, which reopens services", async () => {
    const { client, city } = bridge;
    const id = place(city, "University", 0, 0);
    city.unlimitedMoney = false;
    const bailout = async () => (await client.state("/state/budget")).bailout;
    expect(await bailout()).to.deep.equal({
      amount: 50_000,
      belowBalance: -10_000,
      isOffered: false,
      isSpent: false,
    });
    expect(await client.refusal("accept-bailout")).to.equal(
      "No bailout is offered: the state offers 50000 once the balance is below -10000 at the end of a week, and it is 125000.00",
    );
    setBalance(city, -12_000);
    endWeek(city);
    expect(await bailout()).to.include({ isOffered: true, isSpent: false });
    expect(city.buildings.at(id).switchedOff).to.equal(true);
    const before = fingerprint(city);
    await client.run("accept-bailout", { dryRun: true });
    expect(fingerprint(city)).to.equal(before);
    const { balance } = await client.run("accept-bailout");
    expect(balance).to.be.within(36_000, 38_000);
    expect(city.buildings.at(id).switchedOff).to.equal(false);
    expect(await bailout()).to.include({ isOffered: false, isSpent: true });
    setBalance(city, -12_000);
    endWeek(city);
    expect(await client.refusal("accept-bailout")).to.include("already accepted its bailout");
  });

  it("lists which services are closed for debt, in the order in which they reopen, and why a building is off", async () => {
    const { client, city } = bridge;
    homesOnly(city);
    settleByForce(city, 1_000);
    const landfill = place(city, "Landfill Site", 0, -200);
    const clinic = place(city, "Medical Clinic", 100, -200);
    const park = place(city, "Regular Park", 300, -100);
    city.unlimitedMoney = false;
    setBuildingActive.act(city, { id: park, active: false });
    setBalance(city, -300_000);
    for (let week = 0; week < 2; week++) endWeek(city);
    const { closedForDebt, problems } = await client.state("/state/problems?limit=1000&entityType=building");
    expect(closedForDebt.map(({ id }: { id: number }) => id)).to.deep.equal([landfill, clinic]);
    expect(closedForDebt[0]).to.include({ displayName: "Landfill Site", reopensAtBalance: 1_600 });
    const reasonOf = (id: number) => problems.find((row: { id: number }) => row.id === id)?.turnedOffBy;
    expect([landfill, clinic, park].map(reasonOf)).to.deep.equal(["debt", "debt", "command"]);
    const { advice } = await client.state("/state/advice?limit=100");
    const money = advice.find(({ topic }: { topic: string }) => topic === "money");
    expect(money.message).to.include("The state offers 50000, once.");
    expect(money.commands.map(({ command }: { command: string }) => command)).to.include("accept-bailout");
  });
});
