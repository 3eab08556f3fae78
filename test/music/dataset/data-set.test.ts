import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import {
  type DataSet,
  type DataSetSample,
  loadDataSet,
  parseDataSet,
  saveDataSet,
  trainingPrompts,
  withUniqueIds,
} from "../../../src/music/dataset/data-set.js";
import { RequestError } from "../../../src/music/errors.js";
import { encoded } from "../../encodings.js";
import { temporaryDirectory } from "../tasks.js";

/** Samples "0", "1", ... with captions and genres. */
function dataSet(count: number, change: Partial<DataSet> = {}): DataSet {
  const samples = Array.from({ length: count }, (_, index) => ({
    id: `${index}`,
    audio_path: `${index}.wav`,
    caption: `caption ${index}`,
    genre: `genre ${index}`,
    labeled: true,
  }));
  return { ...parseDataSet(JSON.stringify(samples), "/music/set.json").dataSet, ...change };
}

function changeFirst(set: DataSet, change: Partial<DataSetSample>): DataSet {
  const [first, ...others] = set.samples;
  return { ...set, samples: [{ ...(first as DataSetSample), ...change }, ...others] };
}

const promptOf = (set: DataSet) => trainingPrompts(set).get("0");

describe("training prompts of a data set", () => {
  it("training prompts have the tag at its configured position", () => {
    const tagged = (tag_position: DataSet["tag_position"]) =>
      dataSet(1, { custom_tag: "zydeco", tag_position });
    expect(promptOf(tagged("prepend"))).to.equal("zydeco, caption 0");
    expect(promptOf(tagged("append"))).to.equal("caption 0, zydeco");
    expect(promptOf(tagged("replace"))).to.equal("zydeco");
    expect(promptOf(changeFirst(tagged("append"), { caption: "" }))).to.equal("zydeco");
    expect(promptOf(changeFirst(tagged("prepend"), { custom_tag: "own" }))).to.equal("own, caption 0");
    expect(promptOf(dataSet(1))).to.equal("caption 0");
  });

  it("training prompts use the genre for a percentage of samples, always the same ones", () => {
    const byGenre = (count: number, genre_ratio: number) =>
      [...trainingPrompts(dataSet(count, { genre_ratio }))].flatMap(([id, text]) =>
        text.startsWith("genre") ? [id] : [],
      );
    expect(byGenre(10, 0)).to.deep.equal([]);
    expect(byGenre(10, 39)).to.have.length(3);
    expect(byGenre(10, 100)).to.have.length(10);
    expect(byGenre(10, 39)).to.deep.equal(byGenre(10, 30));
  });

  it("training prompts follow prompt_override, and use the caption if the sample has no genre", () => {
    expect(promptOf(changeFirst(dataSet(1), { prompt_override: "genre" }))).to.equal("genre 0");
    const all = dataSet(1, { genre_ratio: 100 });
    expect(promptOf(changeFirst(all, { prompt_override: "caption" }))).to.equal("caption 0");
    expect(promptOf(changeFirst(all, { genre: "" }))).to.equal("caption 0");
  });

  it("unlabeled samples get no training prompt", () => {
    expect([...trainingPrompts(changeFirst(dataSet(2), { labeled: false })).keys()]).to.deep.equal(["1"]);
  });
});

describe("replacement of repeated sample ids", () => {
  it("repeated sample ids are replaced by unique ones; the first sample keeps its id", () => {
    const [sample] = dataSet(1).samples as [DataSetSample];
    const ids = withUniqueIds([sample, sample, sample]).map(({ id }) => id);
    expect(ids[0]).to.equal("0");
    expect(new Set(ids).size).to.equal(3);
  });
});

const parse = (value: unknown) => parseDataSet(JSON.stringify(value), "/music/sets/set.json").dataSet;

describe("parsing and saving of data set files", () => {
  it("a data set file has defaults for missing fields", () => {
    const { created_at, ...set } = parse({ samples: [{ audio_path: "../song.wav" }] });
    expect(Date.parse(created_at)).to.be.a("number").that.is.not.NaN;
    const { id, ...sample } = set.samples[0] as (typeof set.samples)[0];
    expect(id).to.match(/^[0-9a-f]{8}$/);
    expect(sample).to.deep.equal({
      audio_path: "/music/song.wav",
      filename: "song.wav",
      caption: "",
      genre: "",
      lyrics: "[Instrumental]",
      raw_lyrics: "",
      formatted_lyrics: "",
      bpm: null,
      keyscale: "",
      timesignature: "",
      duration: 0,
      language: "unknown",
      is_instrumental: true,
      custom_tag: "",
      labeled: false,
      prompt_override: null,
    });
    expect({ ...set, samples: [] }).to.deep.equal({
      name: "untitled_dataset",
      custom_tag: "",
      tag_position: "prepend",
      all_instrumental: true,
      genre_ratio: 0,
      samples: [],
    });
  });

  it("a data set file may be a bare list, with numbers stored as strings and strings as numbers", () => {
    const [sample] = parse([
      { audio_path: "/a.mp3", bpm: "98.6", timesignature: 3, duration: 12.9, labeled: null },
    ]).samples;
    expect(sample).to.include({ bpm: 98, timesignature: "3", duration: 12, labeled: false });
    expect(parse([{ audio_path: "/a.mp3", bpm: "N/A" }]).samples[0]?.bpm).to.equal(null);
  });

  it("ignores a tempo or length that is no number or too large, with a warning", () => {
    const { dataSet, warnings } = parseDataSet(
      JSON.stringify([
        { audio_path: "/a.mp3", bpm: 1_000_000_000, duration: 1e300 },
        { audio_path: "/b.mp3", bpm: "fast", duration: "an hour" },
        { audio_path: "/c.mp3", bpm: 1000, duration: 86_400 },
        { audio_path: "/d.mp3", bpm: -1, duration: null },
        ...[1001, [90], true].map((bpm) => ({ audio_path: "/e.mp3", filename: "e", bpm })),
      ]),
      "/music/set.json",
    );
    expect(dataSet.samples.map(({ bpm, duration }) => [bpm, duration])).to.deep.equal([
      ...[
        [null, 0],
        [null, 0],
        [1000, 86_400],
        [null, 0],
      ],
      ...[
        [null, 0],
        [null, 0],
        [null, 0],
      ],
    ]);
    expect(warnings).to.deep.equal([
      'bpm must be a number up to 1000; ignored: 1000000000 of /a.mp3, "fast" of /b.mp3, 1001 of e, and 2 others',
      'duration must be a number up to 86400; ignored: 1e+300 of /a.mp3, "an hour" of /b.mp3',
    ]);
  });

  it("a data set file may spell fields as other tools do", async () => {
    const [sample] = parse([
      {
        ...{ file_name: "sub/a.mp3", tags: ["waltz", "accordion"], norm_lyrics: "la", tempo: "N/A" },
        ...{ key: "N/A", time_signature: "3", duration: "3:25", lang: "English", instrumental: null },
      },
    ]).samples;
    expect(sample).to.include({
      ...{
        audio_path: "/music/sets/sub/a.mp3",
        filename: "a.mp3",
        caption: "waltz, accordion",
        labeled: true,
      },
      ...{ lyrics: "la", is_instrumental: false, bpm: null, keyscale: "", timesignature: "3" },
      ...{ duration: 205, language: "en" },
    });
    expect(parse([{ filename: "a.mp3" }]).samples[0]).to.include({ audio_path: "/music/sets/a.mp3" });
    const windows = parse([
      { audio_path: "C:\\music\\s1.mp3", is_instrumental: "false", labeled: "no", caption: "x" },
    ]);
    expect(windows.samples[0]).to.include({ filename: "s1.mp3", is_instrumental: false, labeled: false });
  });

  it("a data set file may be a table", () => {
    const line = '{"file_name": "a.mp3", "text": "a waltz", "lyrics": "la"}';
    for (const [name, content] of [
      ["set.csv", "file_name;text;lyrics\r\na.mp3;a waltz;la\r\n"],
      ["set.jsonl", `${line}\n`],
    ] as const) {
      const [sample] = parseDataSet(content, `/music/${name}`).dataSet.samples;
      expect(sample).to.include({ audio_path: "/music/a.mp3", caption: "a waltz", lyrics: "la" });
      expect(sample).to.include({ is_instrumental: false, labeled: true });
    }
    expect(() => parseDataSet('{"a": 1}\nroot:x:0', "/music/set.jsonl"))
      .to.throw(RequestError)
      .with.property("detail", "Dataset /music/set.jsonl is not a table");
  });

  it("a data set file may be UTF-8 or UTF-16 with a byte order mark; other encodings are rejected", async () => {
    const path = join(temporaryDirectory(), "set.json");
    for (const bytes of Object.values(encoded('[{"audio_path": "/é.mp3"}]'))) {
      await writeFile(path, bytes);
      expect((await loadDataSet(path)).dataSet.samples[0]?.filename).to.equal("é.mp3");
    }
    await writeFile(path, Buffer.from('[{"audio_path": "/é.mp3"}]', "latin1"));
    const failure = await loadDataSet(path).catch((error: unknown) => error);
    expect(failure)
      .to.be.instanceOf(RequestError)
      .with.property("detail", `Dataset ${path} is not text in UTF-8 or UTF-16: save it as UTF-8`);
  });

  it("sample ids that are unsafe as file names are replaced", () => {
    const ids = ["../../escape", "a/b", "", ".", "x".repeat(65)];
    for (const { id } of parse(ids.map((id) => ({ id, audio_path: `/${id}.wav` }))).samples) {
      expect(id).to.match(/^[0-9a-f]{8}$/);
    }
  });

  it("a data set is the same after saving and loading; saving creates the folder", async () => {
    const path = join(temporaryDirectory(), "new", "set.json");
    const set = parse({
      metadata: {
        name: "mine",
        custom_tag: "tag",
        tag_position: "append",
        genre_ratio: 30,
        all_instrumental: false,
      },
      samples: [
        {
          id: "one",
          audio_path: "/a.mp3",
          caption: "gl\u00fch",
          bpm: 90,
          labeled: true,
          prompt_override: "genre",
        },
        { audio_path: "/b.mp3", lyrics: "la\nla", is_instrumental: false, language: "de" },
      ],
    });
    await saveDataSet(set, path);
    expect((await loadDataSet(path)).dataSet).to.deep.equal(set);
    const written = JSON.parse(await readFile(path, "utf8"));
    expect(written.metadata.num_samples).to.equal(2);
    expect(written.samples[0]).to.include({ id: "one", keyscale: "", prompt_override: "genre" });
  });

  it("a failed save leaves no partial file", async () => {
    const directory = temporaryDirectory();
    await mkdir(join(directory, "set.json"));
    const failure = await saveDataSet(parse([]), join(directory, "set.json")).catch(
      (error: unknown) => error,
    );
    expect(failure).to.be.instanceOf(Error);
    expect(await readdir(directory)).to.deep.equal(["set.json"]);
  });

  it("an unusable data set file is rejected with the reason", async () => {
    const refused = (value: unknown, reason: string) =>
      expect(() => parse(value)).to.throw(RequestError, `Dataset /music/sets/set.json: ${reason}`);
    refused({}, "samples: ");
    refused("text", "its content: ");
    refused([{ caption: "no path" }], "samples.0.audio_path: ");
    refused({ metadata: { genre_ratio: 101 }, samples: [] }, "metadata.genre_ratio: ");
    refused([{ audio_path: "/a.wav", prompt_override: "lyrics" }], "samples.0.prompt_override: ");
    expect(() => parseDataSet("{", "set.json")).to.throw(RequestError, "Dataset set.json is not JSON");
    expect(() => parseDataSet("root:x:0:0", "set.json"))
      .to.throw(RequestError)
      .with.property("detail", "Dataset set.json is not JSON");
    const missing = await loadDataSet("/absent/set.json").catch((error: unknown) => error);
    expect(missing)
      .to.be.instanceOf(RequestError)
      .with.property("detail", "Dataset /absent/set.json not found");
  });

  it("a data set file with any JSON is parsed, or rejected with a RequestError", () => {
    fc.assert(
      fc.property(fc.json(), (content) => {
        try {
          parseDataSet(content, "set.json");
        } catch (error) {
          expect(error).to.be.instanceOf(RequestError);
        }
      }),
    );
  });
});
