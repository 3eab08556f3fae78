import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { readTextFile, readTextFileSync, UnusableFileError } from "../../src/system/regular-file.js";
import { encoded } from "../encodings.js";
import { temporaryDirectory } from "../music/tasks.js";

describe("reading text files", () => {
  const path = join(temporaryDirectory(), "song.txt");

  it("reads UTF-8 and UTF-16 without the byte order mark", async () => {
    const text = "Frühling\r\n春";
    for (const bytes of [Buffer.from(text), ...Object.values(encoded(text))]) {
      writeFileSync(path, bytes);
      expect(await readTextFile(path, 100)).to.equal(text);
      expect(readTextFileSync(path, 100)).to.equal(text);
    }
  });

  it("rejects other encodings with the name of the file and the remedy", async () => {
    for (const bytes of [
      Buffer.from("Frühling", "latin1"),
      Buffer.from("no mark", "utf16le"),
      Buffer.from("\uFEFFhalf a character", "utf16le").subarray(0, -1),
    ]) {
      writeFileSync(path, bytes);
      const failure = await readTextFile(path, 100).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(UnusableFileError);
      expect((failure as Error).message).to.equal(`${path} is not text in UTF-8 or UTF-16: save it as UTF-8`);
    }
  });
});
