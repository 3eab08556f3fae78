import { expect } from "chai";
import fc from "fast-check";
import { type Json, JsonText, writeJson } from "../../src/city/wire/answers.js";
import { Query } from "../../src/city/wire/requests.js";

describe("how the bridge writes JSON", () => {
  it("prints numbers with at most three decimals, without exponents or -0", () => {
    const numbers = [423.6137, 80, 0.5, -0, 1e-9, -1e-9, -2.0006, 0.1 + 0.2, 65_535.9999, 1e21, -0.0005];
    expect(writeJson(numbers)).to.equal("[423.614,80,0.5,0,0,0,-2.001,0.3,65536,1000000000000000000000,0]");
  });

  it("prints integers beyond 2^53 exactly", () => {
    const major = (1n << 62n) | (1n << 16n);
    expect(writeJson({ problem1Raw: major, name: "4611686018427453440" })).to.equal(
      '{"problem1Raw":4611686018427453440,"name":"4611686018427453440"}',
    );
  });

  it("rejects values that JSON cannot represent", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(() => writeJson({ value })).to.throw(RangeError);
    }
  });

  it("prints existing JSON unchanged", () => {
    const rows = new JsonText(["[1,", '"a"]']);
    expect(writeJson({ rows, mask: 5n, again: rows, none: new JsonText(["[", "]"]) })).to.equal(
      '{"rows":[1,"a"],"mask":5,"again":[1,"a"],"none":[]}',
    );
  });

  it("omits undefined values and escapes text", () => {
    expect(writeJson({ a: undefined, 'b"\n': ["\ud800", "\u2028", {}, []] })).to.equal(
      '{"b\\"\\n":["\\ud800","\u2028",{},[]]}',
    );
    expect(writeJson({ a: undefined })).to.equal("{}");
  });

  it("printed JSON parses back to the same value with rounded numbers", () => {
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        fc.string({ unit: "binary" }),
        fc.integer(),
        fc.boolean(),
        fc.constant(null),
        fc.array(tie("value")),
        fc.dictionary(fc.string(), tie("value")),
      ),
    }));
    fc.assert(
      fc.property(value, (original) => {
        const text = writeJson(original as Json);
        expect(JSON.parse(text)).to.deep.equal(JSON.parse(JSON.stringify(original)));
      }),
    );
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
        const text = writeJson(number);
        expect(text).to.match(/^-?\d+(\.\d{1,3})?$/);
        expect(Math.abs(Number(text) - number)).to.be.at.most(Math.max(0.0005001, Math.abs(number) * 1e-15));
      }),
    );
  });
});

describe("how the bridge reads query parameters", () => {
  const query = (text: string) => new Query(`/state/networks?${text}`);

  it("a query parameter has its first valid value, otherwise its default", () => {
    expect(query("limit=7").integer("limit", 500)).to.equal(7);
    expect(query("limit=abc&limit=1.5&limit=9&limit=4").integer("limit", 500)).to.equal(9);
    expect(query("limit=1=2&Limit=3").integer("limit", 500)).to.equal(500);
    expect(query("limit=-3").integer("limit", 500)).to.equal(-3);
    expect(query("d=18.5").decimal("d", 16)).to.equal(18.5);
    expect(query("d=1e3").decimal("d", 16)).to.equal(16);
    expect(query(`limit=${"9".repeat(400)}`).integer("limit", 500)).to.equal(500);
    expect(new Query("/state/networks").integer("limit", 500)).to.equal(500);
  });

  it("a query flag is true only if its text is exactly `true`", () => {
    expect(query("").flag("includeDeadEnds", true)).to.equal(true);
    expect(query("includeDeadEnds=true").flag("includeDeadEnds", false)).to.equal(true);
    for (const text of ["True", "1", "yes", "", "false"]) {
      expect(query(`includeDeadEnds=${text}`).flag("includeDeadEnds", true)).to.equal(false);
    }
  });

  it("text in a query is decoded; invalid escapes stay unchanged", () => {
    expect(query("service=Public+Transport%20x").text("service")).to.equal("Public Transport x");
    expect(query("service=%E0%A4").text("service")).to.equal("%E0%A4");
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(() => query(text).text(text.split("=")[0] as string)).to.not.throw();
      }),
    );
  });
});
