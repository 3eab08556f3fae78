import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { BROKEN_ASSET_PREFAB } from "../simulation/catalogue/building-prefabs.js";
import {
  BAILOUT_MONEY,
  DEBT_LIMIT,
  isBailoutOffered,
  isBailoutSpent,
  payBailout,
} from "../simulation/life/debt.js";
import { LOAN_OFFERS, requireFunds } from "../simulation/life/finance.js";
import { postCityMessage } from "../simulation/life/messages.js";
import {
  areaAt,
  areaIndex,
  isBesideOwned,
  MAX_AREAS,
  TILES_PER_SIDE,
  tileCoordinate,
} from "../simulation/state/areas.js";
import { fieldText, flag, number, optionalNumber, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";
import { requireWholeWithin } from "./requirements.js";

export const setSimulationSpeed = defineCommand({
  path: "/commands/set-simulation-speed",
  summary: "Sets pause and speed; a missing field has its default.",
  label: ({ paused, speed }) =>
    paused === true ? "Pause simulation" : `Set simulation speed ${fieldText(speed, "0")}`,
  fields: z.object({
    paused: flag(false),
    speed: optionalNumber.describe(
      "Truncated and clamped to 1..3. If null, the speed stays the same with `paused`, and becomes 1 otherwise.",
    ),
  }),
  act: (world, { paused, speed }) => {
    world.paused = paused;
    if (speed !== null || !paused)
      world.selectedSpeed = Math.min(Math.max(Math.trunc(speed ?? 1) || 1, 1), 3);
    const { selectedSpeed, finalSpeed } = world.clock;
    const message = paused ? "The simulation is paused." : `The simulation runs at speed ${selectedSpeed}.`;
    return { message, paused, selectedSpeed, finalSpeed };
  },
});

export const takeLoan = defineCommand({
  path: "/commands/take-loan",
  summary: "Takes a loan from a bank that GET /state/budget lists, or repays it in full.",
  label: ({ lender, repay }) =>
    `${repay === true ? "Repay" : "Take"} loan of ${fieldText(lender, "no bank")}`,
  fields: z.object({ lender: text(""), repay: flag(false), dryRun: flag(false) }),
  act: (world, { dryRun, lender, repay }) => {
    const offer = LOAN_OFFERS.find((each) => each.lender === lender);
    if (!offer) {
      const names = LOAN_OFFERS.map((each) => each.lender).join(", ");
      throw new RefusedError(`No bank is named "${lender}"; it must be one of ${names}`);
    }
    const { amount, weeks, weeklyPayment } = offer;
    const { ledger } = world;
    const running = ledger.loans.find((loan) => loan.lender === lender);
    if (repay !== (running !== undefined)) {
      const message = repay
        ? `The city owes ${lender} nothing`
        : `The city already has a loan from ${lender}`;
      throw new RefusedError(message);
    }
    if (running) {
      const rest = running.weeklyPayment * running.weeksLeft;
      requireFunds(world, rest, `Paying back ${lender}`);
      if (!dryRun) {
        ledger.book("LoanPayments", rest);
        ledger.loans.splice(ledger.loans.indexOf(running), 1);
      }
    } else if (!dryRun) {
      ledger.book("Loans", amount);
      ledger.loans.push({ lender, amount, weeklyPayment, weeksLeft: weeks });
    }
    const subject = repay ? `The loan from ${lender}` : `A loan of ${amount} from ${lender}`;
    const message = `${subject} ${dryRun ? "would be" : "was"} ${repay ? "paid back" : "taken"}.`;
    const balance = ledger.balanceCents / 100;
    return { message, lender, repay, amount, weeks, weeklyPayment, balance };
  },
});

const acceptBailout = defineCommand({
  path: "/commands/accept-bailout",
  summary:
    "Accepts the grant that the state offers once to a city in debt; GET /state/budget shows under `bailout` whether it is offered.",
  label: () => "Accept bailout",
  fields: z.object({ dryRun: flag(false) }),
  act: (world, { dryRun }) => {
    const balanceBefore = world.ledger.balanceCents / 100;
    if (isBailoutSpent(world)) {
      throw new RefusedError("The city has already accepted its bailout; take-loan lends money");
    }
    if (!isBailoutOffered(world)) {
      const condition = `the state offers ${BAILOUT_MONEY} once the balance is below ${DEBT_LIMIT} at the end of a week`;
      throw new RefusedError(`No bailout is offered: ${condition}, and it is ${balanceBefore.toFixed(2)}`);
    }
    if (!dryRun) payBailout(world);
    const message = `The state ${dryRun ? "would give" : "gives"} the city ${BAILOUT_MONEY}, once.`;
    return { message, amount: BAILOUT_MONEY, balance: world.ledger.balanceCents / 100 };
  },
});

const unlockArea = defineCommand({
  path: "/commands/unlock-area",
  summary: "Buys a tile of the map, given by its column and row or by a place in it.",
  label: () => "Unlock area",
  fields: z.object({
    dryRun: flag(false),
    tileX: optionalNumber,
    tileZ: optionalNumber,
    x: number(0),
    z: number(0),
    ignoreMaxAreaCount: flag(false),
  }),
  act: (world, { dryRun, ignoreMaxAreaCount, x, z, ...tile }) => {
    const tileX = tile.tileX ?? tileCoordinate(x);
    const tileZ = tile.tileZ ?? tileCoordinate(z);
    requireWholeWithin("tileX", tileX, 0, TILES_PER_SIDE - 1);
    requireWholeWithin("tileZ", tileZ, 0, TILES_PER_SIDE - 1);
    const index = areaIndex(tileX, tileZ);
    const area = areaAt(world, index);
    if (area.owned) throw new RefusedError(`Area ${tileX}, ${tileZ} is already owned`);
    if (!isBesideOwned(world, index))
      throw new RefusedError(`Area ${tileX}, ${tileZ} does not border an owned area`);
    if (world.areas.size >= MAX_AREAS && !ignoreMaxAreaCount) {
      throw new RefusedError(`The city already owns ${MAX_AREAS} areas, its limit`);
    }
    requireFunds(world, area.price, `Area ${tileX}, ${tileZ}`);
    if (!dryRun) {
      world.areas.add(index);
      world.ledger.book("Construction", area.price);
      postCityMessage(world, "CHIRP_NEW_MAP_TILE", "The city has bought new land.");
    }
    const message = `Area ${tileX}, ${tileZ} ${dryRun ? "can be" : "was"} bought for ${area.price}.`;
    return { message, ...areaAt(world, index), price: area.price, maxAreaCount: MAX_AREAS };
  },
});

const disableBlockedAssets = defineCommand({
  path: "/commands/disable-blocked-assets",
  summary: "Disables the game's broken assets `Block Services - ...`.",
  label: () => "Disable blocked assets",
  fields: z.object({}),
  act: (world) => {
    const wasEnabled = world.blockedAssetEnabled;
    world.blockedAssetEnabled = false;
    const { name } = BROKEN_ASSET_PREFAB;
    const names = { package: "Block Services", name, fullName: `Block Services.${name}` };
    const asset = { ...names, path: "embedded:Block Services.crp", wasEnabled, isEnabled: false };
    const disabled = wasEnabled ? 1 : 0;
    return { message: `${disabled} of 1 assets disabled.`, total: 1, disabled, assets: [asset] };
  },
});

export const CITY_COMMANDS = [acceptBailout, disableBlockedAssets, setSimulationSpeed, takeLoan, unlockArea];
