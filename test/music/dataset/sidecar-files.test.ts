import { expect } from "chai";
import fc from "fast-check";
import {
  type Description,
  describeAudio,
  parseSidecarJson,
  parseTable,
} from "../../../src/music/dataset/sidecar-files.js";

/** Describes /music/song.mp3 from sidecar files. `files` maps file names to contents. */
async function describeSong(files: Record<string, string>, fromTables: Description = {}) {
  const warnings: string[] = [];
  const read = async (path: string) => files[path.replace("/music/", "")] ?? null;
  const description = await describeAudio("/music/song.mp3", fromTables, read, (line) => warnings.push(line));
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

  it("a text file beside a lyrics file has the caption, unless another file has it", async () => {
    const files = { "song.txt": "a waltz", "song.lrc": "[00:01.00]la" };
    expect((await describeSong(files)).description).to.deep.equal({
      caption: "a waltz",
      lyrics: "[00:01.00]la",
    });
    const json = { ...files, "song.json": '{"caption": "a march"}' };
    expect((await describeSong(json)).description.caption).to.equal("a march");
  });

  it("missing or blank sidecar files give no description", async () => {
    expect((await describeSong({ "song.caption.txt": " \n", "song.txt": "" })).description).to.deep.equal({});
  });

  it("reads caption and lyrics files of ACE-Step 1", async () => {
    const files = { "song_prompt.txt": "waltz, accordion", "song_lyrics.txt": "la", "song.txt": "not these" };
    expect((await describeSong(files)).description).to.deep.equal({
      caption: "waltz, accordion",
      lyrics: "la",
    });
  });

  it("reads lyrics of the JSON file, unless there is a lyrics file", async () => {
    const json = '{"caption": "a waltz", "lyrics": "from JSON"}';
    const lyricsOf = async (files: Record<string, string>) =>
      (await describeSong({ "song.json": json, ...files })).description.lyrics;
    expect(await lyricsOf({})).to.equal("from JSON");
    expect(await lyricsOf({ "song.txt": "old lyrics" })).to.equal("from JSON");
    expect(await lyricsOf({ "song.lyrics.txt": "own lyrics" })).to.equal("own lyrics");
  });

  it("ignores a tempo that is no number or too large, with a warning", async () => {
    const warnings: string[] = [];
    const warn = (message: string) => warnings.push(message);
    const json = parseSidecarJson('{"caption": "a", "bpm": 1e9}', "a.json", warn);
    expect(json).to.deep.equal({ caption: "a" });
    const table = parseTable("file,bpm\na.mp3,1001\nb.mp3,fast\nc.mp3,90", "songs.csv", warn);
    expect([...table]).to.deep.equal([
      ["a.mp3", {}],
      ["b.mp3", {}],
      ["c.mp3", { bpm: 90 }],
    ]);
    const named = async (path: string) => (path === "/d.txt" ? "caption: a\nbpm: -inf" : null);
    expect(await describeAudio("/d.mp3", {}, named, warn)).to.deep.equal({ caption: "a" });
    expect(warnings).to.deep.equal([
      "bpm must be a number up to 1000; ignored: 1000000000 of a.json",
      'songs.csv: bpm must be a number up to 1000; ignored: "1001" of a.mp3, "fast" of b.mp3',
      'bpm must be a number up to 1000; ignored: "-inf" of d.txt',
    ]);
  });

  it("reads JSON fields in the spellings and types of other tools", async () => {
    const described = async (record: unknown) =>
      (await describeSong({ "song.json": JSON.stringify(record) })).description;
    expect(
      await described({
        ...{ Prompt: "a waltz", genre: ["folk", "waltz"], norm_lyrics: ["la", "la"], BPM: "98.6 bpm" },
        ...{ "Key Scale": "B♭ major", time_signature: "3/4", lang: "German", trigger_word: "zydeco" },
        ...{ is_instrumental: "no" },
      }),
    ).to.deep.equal({
      ...{ caption: "a waltz", genre: "folk, waltz", lyrics: "la\nla", bpm: 98 },
      ...{ keyscale: "B♭ major", timesignature: "3/4", language: "de", custom_tag: "zydeco" },
      is_instrumental: false,
    });
    expect(await described({ tags: ["waltz", "accordion"], caption: "" })).to.deep.equal({
      caption: "waltz, accordion",
    });
    const unset = { bpm: "N/A", keyscale: "auto", timesignature: "N/A", language: "unknown", lyrics: null };
    expect(await described(unset)).to.deep.equal({});
  });

  it("reads text files with named lines, as Side-Step writes them", async () => {
    const text = "caption: a waltz\r\nbpm: 90\r\nrepeat: 2\r\nlyrics:\r\n[Verse]\r\nKey: to my heart\r\n";
    expect((await describeSong({ "song.txt": text })).description).to.deep.equal({
      ...{ caption: "a waltz", bpm: 90, lyrics: "[Verse]\nKey: to my heart" },
    });
    const lyrics = "Text: me\nCaption: this";
    expect((await describeSong({ "song.txt": lyrics })).description).to.deep.equal({ lyrics });
  });

  it("a table takes precedence over JSON, and JSON over the caption file", async () => {
    const files = {
      "song.caption.txt": "from the text file",
      "song.json":
        '{"caption": "from JSON", "bpm": "120", "keyscale": "A minor", "timesignature": 4, "x": []}',
    };
    const fromJson = { caption: "from JSON", bpm: 120, keyscale: "A minor", timesignature: "4" };
    expect((await describeSong(files)).description).to.deep.equal(fromJson);
    const fromTables = { caption: "from the table", bpm: 90 };
    expect((await describeSong(files, fromTables)).description).to.deep.equal({
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
      { examples: [['{"caption": [{"toString": false}]}'], ['{"instrumental": {"toString": false}}']] },
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
    const expected = { "a.mp3": { caption: "a waltz", bpm: 90, keyscale: "C major" }, "b.mp3": {} };
    for (const separator of [",", ";", "\t"]) {
      const lines = [
        ["key", "FILE", "Bpm", "caption"],
        ["C major", "a.mp3", "90.4", "a waltz"],
        ["", "b.mp3", "N/A", ""],
      ];
      const { rows, warnings } = read(lines.map((line) => line.join(separator)).join("\r\n"));
      expect(rows).to.deep.equal(expected);
      expect(warnings).to.deep.equal([]);
    }
  });

  it("tables may be those of Hugging Face, Excel and JSON Lines", () => {
    const expected = { "a.mp3": { caption: "a waltz", lyrics: "la", bpm: 90 } };
    for (const [name, content] of [
      ["metadata.csv", "file_name,text,lyrics,tempo\na.mp3,a waltz,la,90\n"],
      ["songs.csv", "sep=;\r\nFile;Caption;Lyrics;BPM\r\na.mp3;a waltz;la;90\r\n"],
      ["songs.tsv", "audio_path\tprompt\tlyrics\tbpm\na.mp3\ta waltz\tla\t90"],
      ["metadata.jsonl", '{"file_name": "a.mp3", "text": "a waltz", "lyrics": "la", "bpm": "90"}\n\n'],
      ["songs.jsonl", '{"audio": {"path": "a.mp3"}, "tags": ["a waltz"], "norm_lyrics": "la", "bpm": 90}'],
    ] as const) {
      const warnings: string[] = [];
      const table = parseTable(content, name, (line) => warnings.push(line));
      expect(Object.fromEntries(table), name).to.deep.equal(expected);
      expect(warnings, name).to.deep.equal([]);
    }
  });

  it("tables of JSON Lines are skipped with a warning that names the wrong line", () => {
    const warnings: string[] = [];
    parseTable('{"file": "a.mp3"}\n{"file"', "songs.jsonl", (line) => warnings.push(line));
    expect(warnings).to.deep.equal([
      "songs.jsonl is not a valid table and was skipped: line 2 is not a JSON object",
    ]);
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
