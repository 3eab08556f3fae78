/** Commands that set the rules: tax rates, speed and pause. */
import {
  type ClockState,
  CommandRefusedError,
  type SetSimulationSpeed,
  type SetTaxRate,
  type SetTaxRateResult,
  type TaxRow,
} from "../../game.js";
import { LEVELS, SLIDER_SUB_SERVICES } from "../../terms.js";
import { MAX_TAX_RATE, TAX_CLASSES } from "../state/economy.js";
import type { World } from "../state/world.js";

type TaxTarget = Pick<TaxRow, "service" | "subService" | "level" | "scope">;

/** Sets one rate for every sub-service and level that passes the filters. */
export function setTaxRate(world: World, command: SetTaxRate): SetTaxRateResult {
  const rate = Math.trunc(command.rate);
  if (!(rate >= 0 && rate <= MAX_TAX_RATE)) {
    throw new CommandRefusedError(
      "bad-value",
      `The tax rate must be 0 to ${MAX_TAX_RATE}, not ${command.rate}`,
    );
  }
  const targets = taxTargets(command);
  if (targets.length === 0) {
    const { service, subService } = command;
    throw new CommandRefusedError(
      "nothing-matched",
      `No tax matched service ${service ?? "All"}, sub-service ${subService ?? "All"}`,
    );
  }
  const rateOf = ({ subService, level }: TaxTarget) => world.taxes.rate(subService, level === 0 ? 1 : level);
  const before = targets.map(rateOf);
  if (!command.dryRun) {
    for (const { subService, level } of targets) if (level !== 0) world.taxes.set(subService, level, rate);
  }
  return {
    rate,
    rows: targets.map((target, i) => ({ ...target, before: before[i] as number, after: rateOf(target) })),
  };
}

export function setSimulationSpeed(world: World, command: SetSimulationSpeed): ClockState {
  world.paused = command.paused;
  world.selectedSpeed = Math.min(Math.max(Math.trunc(command.speed) || 1, 1), 3);
  return world.clock;
}

/** The six sliders first, level by level; then every sub-service, its aggregate before its levels. */
function taxTargets({ service, subService, level }: SetTaxRate): TaxTarget[] {
  const passes = (row: { service: string; subService: string }) =>
    (service === null || row.service === service) && (subService === null || row.subService === subService);
  const levels = LEVELS.filter((candidate) => level === null || candidate === level);
  const sliders = SLIDER_SUB_SERVICES.filter(passes).flatMap((row) =>
    levels.map((each): TaxTarget => ({ ...row, level: each, scope: "uiTaxSlider" })),
  );
  const table = TAX_CLASSES.filter(passes).flatMap((row) => {
    const aggregate: TaxTarget[] = level === null ? [{ ...row, level: 0, scope: "aggregate" }] : [];
    return [...aggregate, ...levels.map((each): TaxTarget => ({ ...row, level: each, scope: "level" }))];
  });
  return [...sliders, ...table];
}
