/** Notice of a city in debt: the services that are closed, and the bailout that the state offers. */
import { type BudgetAnswer, read, sendCommand } from "./api.js";
import { button, byId, element } from "./panel.js";
import { formatWholeNumber } from "./words.js";

interface ClosedService {
  readonly displayName: string;
  readonly reopensAtBalance: number;
}

/** @param runCommand runs `work`, and shows the error if `work` fails */
export async function showDebt(
  { bailout, servicesClosedForDebt }: BudgetAnswer,
  runCommand: (work: () => Promise<void>) => void,
): Promise<void> {
  const isOffered = bailout?.isOffered === true;
  byId("debt").hidden = !isOffered && !servicesClosedForDebt;
  if (byId("debt").hidden) return;
  const { closedForDebt } = await read<{ closedForDebt: ClosedService[] }>("/state/problems?limit=0");
  const closed = closedForDebt.map(
    ({ displayName, reopensAtBalance }) =>
      `${displayName} (opens again at a balance of ${formatWholeNumber(reopensAtBalance)})`,
  );
  byId("debt-text").textContent =
    closed.length === 0
      ? "The city is deep in debt."
      : `Closed because the city is in debt: ${closed.join(", ")}.`;
  const offer = `Accept ${formatWholeNumber(bailout?.amount ?? 0)} from the state, once`;
  const accept = button(offer, () => runCommand(async () => void (await sendCommand("accept-bailout", {}))));
  // A new button on every poll would lose the focus.
  if ((byId("debt-offer").textContent === offer) === isOffered) return;
  byId("debt-offer").replaceChildren(...(isOffered ? [element("span", {}, accept)] : []));
}
