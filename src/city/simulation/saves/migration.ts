/** Saves of older versions, brought to the shape of today step by step. */
import { START_MONEY } from "../state/economy.js";
import { BUILDING_NUMBERS, base64, pack, type Snapshot } from "./capture.js";
import { unpack } from "./snapshot.js";

type BuildingNumbers = Partial<Record<(typeof BUILDING_NUMBERS)[number], number>>;

/** The numbers of a building that came with each version, with what they begin as. */
const NUMBERS_SINCE: Readonly<Record<2 | 3, BuildingNumbers>> = {
  2: { happiness: 60 },
  3: { commute: 0, want: 0, stored: 0, fuel: 1 },
};

/** Version 2: no traffic, and nothing that follows from it. */
type Snapshot2 = Omit<Snapshot, "traffic" | "trafficCursor">;
/** Version 1: three sums instead of a ledger, and nothing of what came since. */
type Snapshot1 = Omit<Snapshot2, "ledger" | "statistics" | "utilities"> & {
  readonly ledgerCents: { readonly taxes: number; readonly construction: number; readonly upkeep: number };
};

/** @param version that the data was written with */
export function migrate(data: unknown, version: number): Snapshot {
  if (version === 1) return fromVersion2(fromVersion1(data as Snapshot1), [2, 3]);
  return version === 2 ? fromVersion2(data as Snapshot2, [3]) : (data as Snapshot);
}

/** Money did not count then: a city in debt begins anew with what a new one has. */
function fromVersion1({ ledgerCents, ...same }: Snapshot1): Snapshot2 {
  const { taxes, construction, upkeep } = ledgerCents;
  const startCents = Math.max(START_MONEY * 100 + taxes - construction - upkeep, START_MONEY * 100);
  return {
    ...same,
    ledger: { startCents, totals: {}, week: {}, history: [], loans: [] },
    statistics: { samples: [], week: { births: 0, deaths: 0, arrivals: 0, departures: 0 } },
    utilities: [],
  };
}

/** The roads are empty until the first count. @param since versions whose numbers the buildings lack */
function fromVersion2(saved: Snapshot2, since: readonly (2 | 3)[]): Snapshot {
  const added = Object.assign({}, ...since.map((version) => NUMBERS_SINCE[version])) as BuildingNumbers;
  const known = BUILDING_NUMBERS.filter((name) => !(name in added));
  const rows = unpack(saved.buildingNumbers, known).map((row) => ({ ...row, ...added }));
  const readers = BUILDING_NUMBERS.map((name) => (row: BuildingNumbers) => row[name] as number);
  const buildingNumbers = base64(pack(rows, readers));
  return { ...saved, traffic: "", trafficCursor: 0, buildingNumbers };
}
