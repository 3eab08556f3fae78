/** Saves of older versions, brought to the shape of today step by step. */
import { START_MONEY } from "../state/economy.js";
import { BUILDING_NUMBERS, pack, type Snapshot, unpack } from "./snapshot.js";

/** The numbers of a building that version 1 did not have, with what they begin as. */
const BUILDING_NUMBERS_SINCE_1 = { happiness: 60 } as const satisfies Partial<
  Record<(typeof BUILDING_NUMBERS)[number], number>
>;

/** Version 1: three sums instead of a ledger, and nothing of what came since. */
type Snapshot1 = Omit<Snapshot, "ledger" | "statistics" | "utilities"> & {
  readonly ledgerCents: { readonly taxes: number; readonly construction: number; readonly upkeep: number };
};

/** @param version that the data was written with */
export function migrate(data: unknown, version: number): Snapshot {
  return version === 1 ? fromVersion1(data as Snapshot1) : (data as Snapshot);
}

/** Money did not count then: a city in debt begins anew with what a new one has. */
function fromVersion1({ ledgerCents, ...same }: Snapshot1): Snapshot {
  const { taxes, construction, upkeep } = ledgerCents;
  const startCents = Math.max(START_MONEY * 100 + taxes - construction - upkeep, START_MONEY * 100);
  const saved = BUILDING_NUMBERS.filter((name) => !(name in BUILDING_NUMBERS_SINCE_1));
  const rows = unpack(same.buildingNumbers, saved).map((row) => ({ ...row, ...BUILDING_NUMBERS_SINCE_1 }));
  return {
    ...same,
    buildingNumbers: pack(rows as never, BUILDING_NUMBERS),
    ledger: { startCents, totals: {}, week: {}, history: [], loans: [] },
    statistics: { samples: [], week: { births: 0, deaths: 0, arrivals: 0, departures: 0 } },
    utilities: [],
  };
}
