import { expect } from "chai";
import fc from "fast-check";
import { placeBuilding } from "../../../src/city/commands/buildings.js";
import { bulldoze } from "../../../src/city/commands/bulldoze.js";
import { takeLoan } from "../../../src/city/commands/city.js";
import { buildNetwork } from "../../../src/city/commands/roads.js";
import { setTaxRate } from "../../../src/city/commands/set-tax-rate.js";
import { RefusedError } from "../../../src/city/refusal.js";
import { findBuildingPrefab } from "../../../src/city/simulation/catalogue/building-prefabs.js";
import { cityTotals } from "../../../src/city/simulation/life/census.js";
import { demandTargets, lowerDemand, shownDemand } from "../../../src/city/simulation/life/demand.js";
import { budgetOf } from "../../../src/city/simulation/life/finance.js";
import { reportCity } from "../../../src/city/simulation/life/messages.js";
import { payUpkeep } from "../../../src/city/simulation/life/taxes.js";
import { START_MONEY } from "../../../src/city/simulation/state/economy.js";
import type { Building } from "../../../src/city/simulation/state/entities.js";
import type { World } from "../../../src/city/simulation/state/world.js";
import { advance, fingerprint, layLattice, newCity, place, road, smallTown, zone } from "./towns.js";

const WEEK = 4096;
const everything = {
  dryRun: false,
  rate: 11,
  service: "",
  subService: "",
  level: "" as string | number,
};

describe("taxes, costs and loans of the embedded city", () => {
  it("each filter selects its tax rows", () => {
    const city = newCity("empty");
    const rows = (filter: Partial<typeof everything>) =>
      setTaxRate.act(city, { ...everything, ...filter, dryRun: true }).taxRates.length;
    expect(rows({})).to.equal(150);
    expect([rows({ service: "Residential" }), rows({ service: "Commercial" })]).to.deep.equal([40, 46]);
    expect([rows({ service: "Industrial" }), rows({ service: "Office" })]).to.deep.equal([35, 29]);
    expect(rows({ service: "Commercial", subService: "CommercialLow" })).to.equal(11);
    expect(rows({ service: "Commercial", level: 1 })).to.equal(8);
    expect(() => rows({ service: "Road" })).to.throw(RefusedError, /Road/);
  });

  it("set-tax-rate changes only the selected rates, within 0 to 29 percent, and none in a dry run", () => {
    const city = newCity("empty");
    setTaxRate.act(city, { ...everything, service: "Commercial", dryRun: true });
    expect(city.taxes.rate("CommercialEco", 3)).to.equal(9);
    const { taxRates: rows } = setTaxRate.act(city, { ...everything, service: "Commercial", rate: 11.9 });
    expect(rows[0]).to.deep.equal({
      service: "Commercial",
      subService: "CommercialLow",
      level: "Level1",
      scope: "uiTaxSlider",
      before: 9,
      after: 11,
    });
    expect(rows.filter(({ scope }) => scope === "aggregate")).to.have.length(6);
    expect([city.taxes.rate("CommercialEco", 3), city.taxes.rate("OfficeGeneric", 1)]).to.deep.equal([11, 9]);
    for (const rate of [-1, 30, Number.NaN]) {
      expect(() => setTaxRate.act(city, { ...everything, rate })).to.throw(RefusedError, `${rate}`);
    }
  });

  it("income is proportional to the tax rate", () => {
    const income = (rate: number) => {
      const city = newCity();
      smallTown(city);
      setTaxRate.act(city, { ...everything, rate });
      advance(city, 4 * WEEK);
      const { incomeCents, totals } = city.ledger;
      return incomeCents - (totals.Milestones ?? 0) - (totals.Subsidies ?? 0);
    };
    expect(income(0)).to.equal(0);
    // Citizens tolerate these tax rates; above 10 % some citizens leave.
    expect(income(9)).to.be.greaterThan(2 * income(3));
  });

  it("the balance is the start money plus income minus costs", () => {
    const city = newCity();
    const { ledger } = city;
    expect(ledger.balanceCents).to.equal(START_MONEY * 100);
    buildNetwork.act(city, road(0, 0, 80, 0));
    place(city, "Wind Turbine", 100, 0);
    expect(ledger.balanceCents).to.equal((START_MONEY - 400 - 6_000) * 100);
    smallTown(city);
    advance(city, 2 * WEEK);
    expect(Math.min(ledger.incomeCents, ledger.expenseCents)).to.be.greaterThan(0);
    expect(ledger.balanceCents).to.equal(START_MONEY * 100 + ledger.incomeCents - ledger.expenseCents);
    const { balance, income, expenses, history } = budgetOf(city);
    expect(balance).to.equal(ledger.balanceCents / 100);
    expect(history).to.have.length(2);
    for (const [lines, cents] of [
      [income, ledger.incomeCents],
      [expenses, ledger.expenseCents],
    ] as const) {
      expect(Math.round(100 * lines.reduce((sum, { total }) => sum + total, 0))).to.equal(cents);
    }
    expect(history.at(-1)?.income).to.be.closeTo(
      income.reduce((sum, { lastWeek }) => sum + lastWeek, 0),
      0.001,
    );
  });

  it("an unaffordable build is rejected with its cost and the balance", () => {
    const city = newCity();
    city.unlimitedMoney = false;
    const before = fingerprint(city);
    for (const dryRun of [true, false]) {
      const plant = {
        dryRun,
        buildingPrefab: "Fusion Power Plant",
        position: { x: 0, z: 0 },
      } as const;
      expect(() =>
        placeBuilding.act(city, { ...plant, angleDegrees: 0, suggest: false, strict: false }),
      ).to.throw(RefusedError, "A Fusion Power Plant costs 1000000.00, but the balance is 200000.00");
    }
    expect(() => buildNetwork.act(city, road(-8000, 0, 8000, 0, "Large Road Tunnel"))).to.throw(
      /costs 800000\.00/,
    );
    expect(fingerprint(city)).to.equal(before);
    city.unlimitedMoney = true;
    place(city, "Fusion Power Plant", 0, 0);
    expect(budgetOf(city).balance).to.equal(-800_000);
  });

  it("place-building warns if the city would lose money each week, and says how long the money lasts", () => {
    const city = newCity();
    smallTown(city);
    advance(city, 8 * WEEK);
    city.unlimitedMoney = false;
    const warningsFor = (buildingPrefab: string, dryRun: boolean) => {
      const site = { buildingPrefab, position: { x: -400, z: 400 }, angleDegrees: 0 };
      const fields = { ...site, dryRun, suggest: false, strict: false };
      const { warnings = [] } = placeBuilding.act(city, fields) as { warnings?: string[] };
      return warnings.filter((warning) => warning.includes("a week"));
    };
    setTaxRate.act(city, { ...everything, rate: 20 });
    expect(warningsFor("Regular Park", true)).to.deep.equal([]);
    const [warning] = warningsFor("University", true);
    expect(warning).to.match(
      /^The building costs 768 a week \(the state pays 60 %\) and the city keeps [3-7]\d\d: it would lose \d+ a week, and its money lasts \d+ weeks$/,
    );
    expect(warningsFor("University", false)).to.deep.equal([warning]);
    expect(warningsFor("Regular Park", true)[0]).to.match(
      /costs 48 a week \(the state pays 60 %\) and the city already loses \d+:/,
    );
    city.unlimitedMoney = true;
    expect(warningsFor("University", true)).to.deep.equal([]);
  });

  it("the weekly surplus follows the taxes at once, and is what a quiet week brings", () => {
    const city = newCity();
    smallTown(city);
    advance(city, 9 * WEEK);
    const { weeklySurplus, balance } = budgetOf(city);
    setTaxRate.act(city, { ...everything, rate: 0 });
    expect(budgetOf(city).weeklySurplus).to.be.below(weeklySurplus - 100);
    setTaxRate.act(city, { ...everything, rate: 9 });
    advance(city, WEEK);
    expect(budgetOf(city).balance - balance).to.be.closeTo(weeklySurplus, 15);
  });

  it("the state pays three fifths of the upkeep up to 1,000 citizens, and nothing from 4,000", () => {
    const aid = (citizens: number) => {
      const city = newCity("empty");
      const station = city.buildings.at(place(city, "Police Station", 0, 0));
      fill(city, citizens);
      payUpkeep(city, station);
      const { PoliceDepartment: upkeep = 0, Subsidies: paid = 0 } = city.ledger.week;
      return paid / upkeep;
    };
    expect([0, 1_000, 2_500, 4_000, 9_000].map((citizens) => Math.round(100 * aid(citizens)))).to.deep.equal([
      60, 60, 30, 0, 0,
    ]);
  });

  it("a refused prefab names similar ones and where the list is", () => {
    const city = newCity("empty");
    const refusal = (build: () => unknown) => {
      try {
        build();
      } catch (error) {
        return String((error as Error).message);
      }
      return "";
    };
    expect(refusal(() => place(city, "clinic", 0, 0))).to.match(
      /^No building prefab is named "clinic"; near names are "Medical Clinic".*; GET \/prefabs\/buildings lists all$/,
    );
    // The name that the page shows finds the prefab's own name.
    expect(refusal(() => place(city, "Small Park", 0, 0))).to.include('near names are "Regular Park"');
    expect(refusal(() => buildNetwork.act(city, road(0, 0, 80, 0, "Two-Lane Road")))).to.match(
      /near names are "Basic Road".*; GET \/prefabs\/networks lists all$/,
    );
    expect(refusal(() => place(city, "zzz", 0, 0))).to.equal(
      'No building prefab is named "zzz"; GET /prefabs/buildings lists all',
    );
  });

  it("placed growables cost more than they earn in a year", () => {
    const play = (towers: number) => {
      const city = newCity();
      smallTown(city);
      layLattice(city, 160, -80, 3, 1);
      buildNetwork.act(city, road(160, 40, 160, -40, "Water Pipe"));
      buildNetwork.act(city, road(160, -40, 400, -40, "Water Pipe"));
      zone(city, "ResidentialHigh", 280, -40, 140);
      for (let i = 0; i < towers; i++) place(city, "H5 4x4 Highrise07", 190 + 80 * i, -56);
      const built = budgetOf(city).balance;
      advance(city, 52 * WEEK);
      return { built, ended: budgetOf(city).balance, citizens: city.citizens.size };
    };
    const [without, bought] = [play(0), play(3)];
    expect(without.built - bought.built).to.equal(3 * 25_600);
    expect(bought.ended).to.be.lessThan(without.ended);
  });

  it("a growable gives no refund if it is removed because it stands in the wrong zone", () => {
    const city = newCity();
    buildNetwork.act(city, road(0, 0, 160, 0));
    zone(city, "ResidentialHigh", 120, 0, 20);
    for (const x of [32, 120]) place(city, "H3 2x2 Office11", x, 16);
    const { balance } = budgetOf(city);
    expect(balance).to.be.lessThan(START_MONEY - 400);
    advance(city, 3 * 256);
    expect(city.buildings.all()).to.deep.equal([]);
    expect(budgetOf(city).balance).to.equal(balance);
  });

  it("a police station costs 23 % more upkeep in a city of 8,000 citizens than in a town of 4,000", () => {
    const upkeep = (citizens: number) => {
      const city = newCity("empty");
      const world = city;
      const station = world.buildings.at(place(city, "Police Station", 0, 0));
      fill(city, citizens);
      payUpkeep(world, station);
      return world.ledger.week.PoliceDepartment ?? 0;
    };
    expect(upkeep(4_000)).to.equal(upkeep(100));
    expect(upkeep(8_000) / upkeep(4_000)).to.be.closeTo(1.23, 0.001);
    expect(upkeep(20_000)).to.equal(upkeep(8_000));
  });

  it("a milestone pays a reward for each citizen gained since the last milestone", () => {
    const city = newCity("empty");
    const rewardAt = (citizens: number) => {
      const before = budgetOf(city).balance;
      fill(city, citizens);
      reportCity(city);
      return budgetOf(city).balance - before;
    };
    expect([99, 110, 124, 125, 1_000, 1_300].map(rewardAt)).to.deep.equal([
      0, 5_000, 0, 1_250, 43_750, 12_500,
    ]);
  });

  it("an electricity pole costs money", () => {
    const city = newCity();
    place(city, "Electricity Pole", 0, 0);
    expect(budgetOf(city).balance).to.equal(START_MONEY - 40);
  });

  it("each bank gives one loan, which is repaid weekly or at once", () => {
    const city = newCity();
    const [offer] = budgetOf(city).loanOffers;
    if (!offer) throw new Error("the city has no loan offers");
    const loan = { dryRun: false, lender: offer.lender, repay: false };
    takeLoan.act(city, { ...loan, dryRun: true });
    expect(() => takeLoan.act(city, { ...loan, repay: true })).to.throw(RefusedError, /owes/);
    expect(() => takeLoan.act(city, { ...loan, lender: "Nobody" })).to.throw(RefusedError, /Nobody/);
    takeLoan.act(city, loan);
    expect(budgetOf(city).balance).to.equal(START_MONEY + offer.amount);
    expect(() => takeLoan.act(city, loan)).to.throw(RefusedError, /already/);
    advance(city, 3 * WEEK);
    expect(budgetOf(city).balance).to.equal(START_MONEY + offer.amount - 3 * offer.weeklyPayment);
    takeLoan.act(city, { ...loan, repay: true });
    expect(budgetOf(city).loans).to.deep.equal([]);
    expect(budgetOf(city).balance).to.equal(START_MONEY + offer.amount - offer.weeks * offer.weeklyPayment);
  });
});

function fill(world: World, citizens: number): void {
  while (world.citizens.size < citizens) {
    const id = world.citizens.nextId();
    world.citizens.put({ id, householdId: 0, bornFrame: 0, education: 0, workId: 0 });
  }
}

describe("the embedded city's demand", () => {
  const nothing = {
    jobs: 0,
    openJobs: 0,
    homes: 0,
    emptyHomes: 0,
    unemployed: 0,
    filledShopJobs: 0,
    visitorPlaces: 0,
    freeVisitorPlaces: 0,
  };

  it("demand follows the published formulas, and falls faster with empty homes", () => {
    expect(demandTargets(nothing)).to.deep.equal({ residential: 100, commercial: 0, workplace: 0 });
    const town = { ...nothing, jobs: 120, openJobs: 20, homes: 200, emptyHomes: 10, unemployed: 5 };
    expect(
      demandTargets({ ...town, filledShopJobs: 30, visitorPlaces: 150, freeVisitorPlaces: 60 }),
    ).to.deep.equal({
      residential: 50 + Math.trunc((200 * 20 - 200 * 5) / 120) - 40,
      commercial: Math.max(
        0,
        50 + Math.trunc((200 * 38 - 200 * 48) / 100) + Math.trunc((15_000 - 18_000) / 150),
      ),
      workplace: 50 + Math.trunc((200 * 5 - 200 * 20) / 120),
    });
  });

  it("demand stays between 0 and 100, falls with empty homes and rises with open jobs", () => {
    const total = fc.nat(50_000);
    fc.assert(
      fc.property(total, total, total, total, (jobs, openJobs, homes, unemployed) => {
        const town = { ...nothing, jobs, openJobs: Math.min(openJobs, jobs), homes, unemployed };
        for (const bar of Object.values(demandTargets(town))) {
          expect(bar).to.be.within(0, 100);
          expect(Number.isInteger(bar)).to.equal(true);
        }
        const emptier = demandTargets({ ...town, emptyHomes: homes });
        expect(emptier.residential).to.be.at.most(demandTargets(town).residential);
        const busier = demandTargets({ ...town, openJobs: town.jobs });
        expect(busier.residential).to.be.at.least(demandTargets(town).residential);
      }),
    );
  });

  it("demand falls more in a town than in a village when homes grow by the same share", () => {
    const fallAt = (households: number) => {
      const world = newCity("empty");
      for (let id = 1; id <= households; id++)
        world.households.put({ id, homeId: 0, wealth: 0, memberIds: [] });
      world.demand.residential = 100;
      const homes = households / 100;
      lowerDemand(world, {
        prefab: findBuildingPrefab("H1 2x2 Tenement05"),
        homes,
        jobs: 0,
      } as Building);
      return 100 - world.demand.residential;
    };
    expect(fallAt(2_500) / fallAt(250)).to.be.closeTo(11 / 2, 0.001);
  });

  it("demand rises by at most one point a cycle", () => {
    const city = newCity();
    smallTown(city);
    let last = { ...city.demand };
    for (let cycle = 0; cycle < 80; cycle++) {
      advance(city, 256);
      for (const bar of ["residential", "commercial", "workplace"] as const) {
        expect(city.demand[bar] - last[bar]).to.be.at.most(1 + Number.EPSILON * 100);
        expect(Number.isInteger(shownDemand(city)[bar])).to.equal(true);
      }
      last = { ...city.demand };
    }
    const totals = cityTotals(city);
    expect(totals.homes - totals.emptyHomes).to.equal(city.households.size);
  });
});

describe("messages in the embedded city", () => {
  it("messages report a first road, an opening, a milestone and named citizens", () => {
    const city = newCity();
    expect(city.board.messages).to.deep.equal([]);
    smallTown(city);
    expect(city.board.messages.map(({ messageId }) => messageId)).to.deep.equal([
      "CHIRP_RANDOM",
      "CHIRP_NEW_WIND_OR_SOLAR_PLANT",
    ]);
    advance(city, WEEK);
    for (const { id, prefab } of city.buildings.all()) {
      if (prefab.service !== "Water") continue;
      bulldoze.act(city, { dryRun: false, entityType: "building", id, keepNodes: false });
    }
    advance(city, 2 * WEEK);
    const complaint = city.board.messages.find(({ messageId }) => messageId === "CHIRP_NO_WATER");
    expect(complaint?.type).to.equal("CitizenMessage");
    expect(complaint?.senderName).to.match(/^\w+ \w+$/);
    expect(complaint?.senderId).to.be.greaterThan(0);
    expect(city.board.messages.length).to.be.at.most(100);
  });
});
