import { expect } from "chai";
import { Leases } from "../../src/engine/leases.js";
import { failureOf } from "../failures.js";

describe("leases of models", () => {
  const model = {};

  it("hold a model from the start of a call until the last call ends, even if it fails", async () => {
    const leases = new Leases();
    const gates: ((error?: Error) => void)[] = [];
    const work = () =>
      new Promise<void>((resolve, reject) => {
        gates.push((error) => (error ? reject(error) : resolve()));
      });
    const calls = [leases.hold(model, work), leases.hold(model, work)];
    expect([leases.isHeld(model), leases.isHeld({})]).to.deep.equal([true, false]);
    let released = false;
    const waiting = leases.released(model).then(() => {
      released = true;
    });
    gates[0]?.(new Error("no song"));
    expect((await failureOf(calls[0] as Promise<void>)).message).to.equal("no song");
    expect([leases.isHeld(model), released]).to.deep.equal([true, false]);
    gates[1]?.();
    await Promise.all([calls[1], waiting]);
    expect(leases.isHeld(model)).to.equal(false);
  });
});
