import { expect } from "chai";
import fc from "fast-check";
import { describeAudio, parseSidecarJson, parseTable } from "../../../src/music/dataset/sidecar-files.js";

const noTables = new Map();

/** Describes /music/song.mp3 from sidecar files. `files` maps file names to contents. */
async function describeSong(files: Record<string, string>, tables = noTables) {
  const warnings: string[] = [];
  const read = async (path: string) => files[path.replace("/music/", "")] ?? null;
  const description = await describeAudio("/music/song.mp3", tables, read, (line) => warnings.push(line));
  return { description, warnings };
}

describe("reading sidecar files", () => {
  it("sidecar files provide caption and lyrics", async () => {
    const { description } = await describeSong({
      "song.caption.txt": "a waltz\n",
      "song.lyrics.txt": "la la\n",
      "song.txt": "not these",
    });
    expect(description).to.deep.equal({ caption: "a waltz", lyrics: "la la" });
    expect((await describeSong({ "song.txt": "la" })).description).to.deep.equal({ lyrics: "la" });
  });

  it("missing or blank sidecar files give no description", async () => {
    expect((await describeSong({ "song.caption.txt": " \n", "song.txt": "" })).description).to.deep.equal({});
  });

  it("a table takes precedence over JSON, and JSON over the caption file", async () => {
    const files = {
      "song.caption.txt": "from the text file",
      "song.json":
        '{"caption": "from JSON", "bpm": "120", "keyscale": "A minor", "timesignature": 4, "x": []}',
    };
    const fromJson = { caption: "from JSON", bpm: 120, keyScale: "A minor", timeSignature: "4" };
    expect((await describeSong(files)).description).to.deep.equal(fromJson);
    const tables = new Map([["song.mp3", { caption: "from the table", bpm: 90 }]]);
    expect((await describeSong(files, tables)).description).to.deep.equal({
      ...fromJson,
      caption: "from the table",
      bpm: 90,
    });
  });

  it("sidecar JSON files that are not an object are skipped with a warning", async () => {
    for (const content of ["{", "[]", "null", '"caption"']) {
      const { description, warnings } = await describeSong({ "song.json": content, "song.txt": "la" });
      expect(description).to.deep.equal({ lyrics: "la" });
      expect(warnings).to.deep.equal(["song.json is not a JSON object and was skipped"]);
    }
  });

  it("parsing a sidecar JSON file never throws", () => {
    fc.assert(
      fc.property(fc.json(), (content) => {
        const { bpm = 0, ...texts } = parseSidecarJson(content, "song.json", () => {});
        expect(Number.isInteger(bpm)).to.equal(true);
        for (const text of Object.values(texts)) expect(text).to.be.a("string").that.is.not.empty;
      }),
    );
  });
});

describe("reading sidecar tables", () => {
  const read = (content: string) => {
    const warnings: string[] = [];
    const table = parseTable(content, "songs.csv", (line) => warnings.push(line));
    return { rows: Object.fromEntries(table), warnings };
  };

  it("tables are separated by comma, semicolon or tab, with columns in any order and case", () => {
    const expected = { "a.mp3": { caption: "a waltz", bpm: 90, keyScale: "C major" }, "b.mp3": {} };
    for (const separator of [",", ";", "\t"]) {
      const lines = [
        ["key", "FILE", "Bpm", "caption"],
        ["C major", "a.mp3", "90.4", "a waltz"],
        ["", "b.mp3", "fast", ""],
      ];
      const { rows, warnings } = read(lines.map((line) => line.join(separator)).join("\r\n"));
      expect(rows).to.deep.equal(expected);
      expect(warnings).to.deep.equal([]);
    }
  });

  it("tables may have quotes, a byte order mark and short rows", () => {
    const { rows } = read('\uFEFFFile,Caption\n"a, b.mp3","says ""hello"",\ntwice"\nc.mp3\n\n');
    expect(rows).to.deep.equal({ "a, b.mp3": { caption: 'says "hello",\ntwice' }, "c.mp3": {} });
  });

  it("tables are skipped with a warning if their syntax or columns are invalid", () => {
    for (const content of ["", "Name,Caption\na.mp3,x", 'File\n"a.mp3']) {
      const { rows, warnings } = read(content);
      expect(rows).to.deep.equal({});
      expect(warnings).to.have.length(1);
      expect(warnings[0]).to.match(/^songs\.csv .* skipped/);
    }
  });

  it("tables are parsed without an exception for any content", () => {
    const content = fc.string({
      unit: fc.constantFrom("File", ",", ";", "\t", '"', "\n", "\r", "a", "1", "é"),
    });
    fc.assert(
      fc.property(content, (text) => {
        for (const [name, { bpm = 0 }] of parseTable(text, "songs.csv", () => {})) {
          expect(name).to.not.equal("");
          expect(Number.isInteger(bpm)).to.equal(true);
        }
      }),
    );
  });

  it("quoted names and captions in tables are read unchanged", () => {
    const cell = fc
      .string()
      .map((text) => text.trim())
      .filter((text) => text !== "");
    fc.assert(
      fc.property(fc.uniqueArray(cell, { minLength: 1 }), cell, (names, caption) => {
        const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
        const lines = names.map((name) => `${quote(name)},${quote(caption)}`);
        const { rows } = read(["File,Caption", ...lines].join("\n"));
        expect(rows).to.deep.equal(Object.fromEntries(names.map((name) => [name, { caption }])));
      }),
    );
  });
});
