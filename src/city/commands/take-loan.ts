import { z } from "zod";
import { RefusedError } from "../refusal.js";
import { LOAN_OFFERS, requireFunds } from "../simulation/life/finance.js";
import { fieldText, flag, text } from "../wire/requests.js";
import { defineCommand } from "./command.js";

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
