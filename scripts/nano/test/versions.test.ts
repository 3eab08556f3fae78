import { createHash } from "node:crypto";
import { join } from "node:path";
import { expect } from "chai";
import { Tokenizer } from "../../../src/engine/tokenizer.js";
import { compose } from "../compose/compose.js";
import { shippedModel } from "../dataset/data-set.js";
import { createRecord } from "../dataset/record.js";
import { renderPiece } from "../render/mix.js";
import { Synthesiser } from "../render/synthesiser.js";
import { encodeWav } from "../render/wav.js";

describe("check that changed training data has a new version", () => {
  it("notes, words, token ids and audio still match the digest of the current versions", async function () {
    this.timeout(600_000);
    const made = createHash("sha256");
    const tokenizer = await Tokenizer.load(join(shippedModel, "text_encoder"));
    for (let seed = 0; seed < 88; seed++) {
      const piece = compose(seed);
      const notes = piece.parts.map((part) => [part.role, part.instrument.program, part.notes]);
      const record = await createRecord(piece, tokenizer, ["bass", "drums"]);
      made.update(JSON.stringify([notes, record]));
    }
    const synthesiser = new Synthesiser();
    for (const seed of [1, 8, 10, 14]) {
      const { mix, stems } = await renderPiece(compose(seed, 4), synthesiser, seed % 2 === 0);
      for (const audio of [mix, ...stems.values()]) made.update(encodeWav(audio));
    }
    const digest = made.digest("hex").slice(0, 12);
    expect(digest, "set new versions in dataset/data-set.ts, then this digest").to.equal("e856dcb68301");
  });
});
