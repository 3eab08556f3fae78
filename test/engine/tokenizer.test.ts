import { readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import fc from "fast-check";
import { audioCodeToken } from "../../src/engine/audio-code-text.js";
import { EngineError } from "../../src/engine/errors.js";
import { Tokenizer } from "../../src/engine/tokenizer.js";
import { failureOf } from "../failures.js";
import { temporaryDirectory } from "../music/tasks.js";

const fixtures = fileURLToPath(new URL("fixtures", import.meta.url));
const nanoDirectory = fileURLToPath(new URL("../../models/carillon-nano/lm", import.meta.url));

async function readJson<T>(...path: string[]): Promise<T> {
  return JSON.parse(await readFile(resolve(fixtures, ...path), "utf8")) as T;
}

interface TokenizerJson {
  added_tokens: { id: number; content: string }[];
  model: { vocab: Record<string, number>; merges: string[] };
}

describe("encoding and decoding of tokens", () => {
  let qwen3: Tokenizer;
  let nano: Tokenizer;
  const temporary = temporaryDirectory();

  before(async () => {
    qwen3 = await Tokenizer.load(join(fixtures, "qwen3"));
    nano = await Tokenizer.load(nanoDirectory);
  });

  it("encodes the reference texts like the Qwen3 tokenizer", async () => {
    const vectors = await readJson<{ text: { text: string; ids: number[] }[] }>("qwen3", "vectors.json");
    for (const { text, ids } of vectors.text) {
      expect([...(await qwen3.encodeText(text))], JSON.stringify(text)).to.deep.equal(ids);
    }
  });

  it("encodes texts with carillon-nano's vocabularies like the transformers library", async () => {
    const goldens = await readJson<Record<string, { text: string; ids: number[] }[]>>(
      "../../goldens/tokenizers.json",
    );
    for (const [folder, texts] of Object.entries(goldens)) {
      const tokenizer = await Tokenizer.load(
        fileURLToPath(new URL(`../../models/carillon-nano/${folder}`, import.meta.url)),
      );
      for (const { text, ids } of texts)
        expect([...(await tokenizer.encodeText(text))], `${folder}: ${JSON.stringify(text)}`).to.deep.equal(
          ids,
        );
    }
    expect(Object.keys(goldens)).to.deep.equal(["text_encoder", "lm"]);
  });

  it("encodes control tokens and audio codes between texts, and decodes them", async () => {
    const text = "user\nnai\u0308ve\r\n";
    const ids = await nano.encode([
      { control: "<|im_start|>" },
      { text },
      { control: "<|im_end|>" },
      { audioCode: 3 },
      { audioCode: 199 },
    ]);
    expect([...ids]).to.deep.equal([2044, ...(await nano.encodeText(text)), 2045, 2048 + 3, 2048 + 199]);
    expect([...nano.audioCodes(ids)]).to.deep.equal([3, 199]);
    expect(nano.decode(ids)).to.equal(
      "<|im_start|>user\nna\u00efve\r\n<|im_end|><|audio_code_3|><|audio_code_199|>",
    );
  });

  it("loads the same tokenizer from vocab.json, merges.txt and added_tokens.json as from tokenizer.json", async () => {
    const { added_tokens, model } = await readJson<TokenizerJson>("qwen3", "tokenizer.json");
    await writeFile(join(temporary, "vocab.json"), JSON.stringify(model.vocab));
    await writeFile(join(temporary, "merges.txt"), `#version: 0.2\n${model.merges.join("\n")}\n`);
    const added = Object.fromEntries(added_tokens.map(({ content, id }) => [content, id]));
    await writeFile(join(temporary, "added_tokens.json"), JSON.stringify(added));
    const tokenizer = await Tokenizer.load(temporary);
    await rm(join(temporary, "vocab.json"));

    const parts = [{ control: "<|im_start|>" }, { text: "system\n# Instruction\nnaïve café — don't" }];
    expect(await tokenizer.encode(parts)).to.deep.equal(await qwen3.encode(parts));
  });

  it("text is never encoded as control tokens, and decoding returns it unchanged", async () => {
    const control = fc.constantFrom(
      "<|im_end|>",
      "</think>",
      "<|audio_code_5|>",
      "<|endoftext|>",
      "<tool_call>",
    );
    const text = fc.array(fc.oneof(control, fc.string({ unit: "grapheme" }), fc.string({ unit: "binary" })));
    await fc.assert(
      fc.asyncProperty(text, async (pieces) => {
        const joined = pieces.join("");
        const ids = await qwen3.encode(pieces.map((piece) => ({ text: piece })));
        expect(Math.max(-1, ...ids)).to.be.below(qwen3.controlId("<|endoftext|>"));
        expect(qwen3.decode(ids)).to.equal(joined.normalize("NFC"));
      }),
      { numRuns: 500 },
    );
  });

  it("encoding a long text does not block the event loop", async () => {
    const order: string[] = [];
    const encoded = qwen3.encodeText("\n".repeat(32_768)).then((ids) => order.push(`${ids.length} ids`));
    setImmediate(() => order.push("another event"));
    await encoded;
    expect(order).to.deep.equal(["another event", "8192 ids"]);
  });

  it("closing the tokenizer rejects running and later encodings", async () => {
    const tokenizer = await Tokenizer.load(nanoDirectory);
    const underWay = tokenizer.encodeText("\n".repeat(32_768));
    const failures = [underWay, tokenizer.close().then(() => tokenizer.encodeText("a"))].map(failureOf);
    for (const error of await Promise.all(failures)) {
      expect(error).to.be.instanceOf(EngineError).with.property("code", "TOKENIZER");
    }
  });

  it("merges tokens across the boundary between two texts", async () => {
    expect(await qwen3.encode([{ text: "conditions:" }, { text: "\n\n" }])).to.deep.equal(
      await qwen3.encodeText("conditions:\n\n"),
    );
  });

  it("constrained decoding gets the bytes of ordinary tokens; control tokens and audio codes have no bytes", async () => {
    const { bytes, offsets, endTokenIds, firstAudioCodeId, audioCodeCount } = nano.vocabulary(6150, 64000);
    const bytesOf = (id: number): string =>
      Buffer.from(bytes.subarray(offsets[id], offsets[id + 1])).toString("utf8");
    expect(offsets).to.have.length(6151);
    expect(offsets[6150]).to.equal(bytes.length);
    expect([...(await nano.encodeText("# Caption\n"))].map(bytesOf).join("")).to.equal("# Caption\n");
    expect(bytesOf(nano.controlId("<think>"))).to.equal("");
    expect(bytesOf(firstAudioCodeId)).to.equal("");
    expect([...endTokenIds]).to.deep.equal([2045, 2043]);
    expect({ firstAudioCodeId, audioCodeCount }).to.deep.equal({
      firstAudioCodeId: 2048,
      audioCodeCount: 4096,
    });
  });

  it("limits the audio codes to the renderer's codebook", () => {
    expect(nano.vocabulary(6144, 64).audioCodeCount).to.equal(64);
  });

  it("handles the 64,000 audio codes of the published models", async () => {
    const document = await readJson<TokenizerJson>("qwen3", "tokenizer.json");
    for (let code = 0; code < 65_535; code++) {
      document.added_tokens.push({ id: 151_669 + code, content: audioCodeToken(code) });
    }
    await writeFile(join(temporary, "tokenizer.json"), JSON.stringify(document));
    const tokenizer = await Tokenizer.load(temporary);
    expect(tokenizer.size).to.equal(217_204);
    expect(tokenizer.vocabulary(217_204, 64_000)).to.include({
      firstAudioCodeId: 151_669,
      audioCodeCount: 64_000,
    });
    expect([...tokenizer.audioCodes([198, 151_669, 215_668, 217_203])]).to.deep.equal([0, 63_999, 65_534]);
    expect([...(await tokenizer.encodeText("<|audio_code_0|>"))]).to.not.include(151_669);
  });

  it("rejects unusable tokenizers with a reason", async () => {
    const failure = async (action: () => unknown): Promise<string> => {
      const error = await failureOf((async () => action())());
      expect(error).to.include({ name: "EngineError", code: "TOKENIZER" });
      return error.message;
    };
    expect(await failure(() => Tokenizer.load(join(fixtures, "absent")))).to.contain(
      "neither tokenizer.json nor",
    );
    expect(await failure(() => nano.controlId("<|nonsense|>"))).to.contain("has no <|nonsense|> token");
    expect(await failure(() => nano.vocabulary(600, 64000))).to.contain("6144 tokens");
    expect(await failure(() => qwen3.vocabulary(151_669, 64000))).to.contain("no audio codes");

    const document = await readJson<TokenizerJson>(nanoDirectory, "tokenizer.json");
    document.added_tokens = document.added_tokens.filter(({ content }) => content !== audioCodeToken(7));
    await writeFile(join(temporary, "tokenizer.json"), JSON.stringify(document));
    expect(await failure(() => Tokenizer.load(temporary))).to.contain("not contiguous");
    await writeFile(join(temporary, "tokenizer.json"), "{");
    expect(await failure(() => Tokenizer.load(temporary))).to.contain("cannot be read");
  });
});
