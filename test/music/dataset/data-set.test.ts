import { expect } from "chai";
import {
  type DataSet,
  type DataSetSample,
  parseDataSet,
  trainingPrompts,
  withOwnIds,
} from "../../../src/music/dataset/data-set.js";

/** Samples "0", "1", ... with captions and genres. */
function dataSet(count: number, change: Partial<DataSet> = {}): DataSet {
  const samples = Array.from({ length: count }, (_, index) => ({
    id: `${index}`,
    audio_path: `${index}.wav`,
    caption: `caption ${index}`,
    genre: `genre ${index}`,
    labeled: true,
  }));
  return { ...parseDataSet(JSON.stringify(samples), "/music/set.json"), ...change };
}

function changeFirst(set: DataSet, change: Partial<DataSetSample>): DataSet {
  const [first, ...others] = set.samples;
  return { ...set, samples: [{ ...(first as DataSetSample), ...change }, ...others] };
}

const promptOf = (set: DataSet) => trainingPrompts(set).get("0");

describe("training prompts", () => {
  it("put the tag where it belongs", () => {
    const tagged = (tagPosition: DataSet["tagPosition"]) => dataSet(1, { customTag: "zydeco", tagPosition });
    expect(promptOf(tagged("prepend"))).to.equal("zydeco, caption 0");
    expect(promptOf(tagged("append"))).to.equal("caption 0, zydeco");
    expect(promptOf(tagged("replace"))).to.equal("zydeco");
    expect(promptOf(changeFirst(tagged("append"), { caption: "" }))).to.equal("zydeco");
    expect(promptOf(changeFirst(tagged("prepend"), { customTag: "own" }))).to.equal("own, caption 0");
    expect(promptOf(dataSet(1))).to.equal("caption 0");
  });

  it("describe the asked share of samples by their genre, always the same ones", () => {
    const byGenre = (count: number, genreRatio: number) =>
      [...trainingPrompts(dataSet(count, { genreRatio }))].flatMap(([id, text]) =>
        text.startsWith("genre") ? [id] : [],
      );
    expect(byGenre(10, 0)).to.deep.equal([]);
    expect(byGenre(10, 39)).to.have.length(3);
    expect(byGenre(10, 100)).to.have.length(10);
    expect(byGenre(10, 39)).to.deep.equal(byGenre(10, 30));
  });

  it("follow a sample's own choice, and fall back to the caption without a genre", () => {
    expect(promptOf(changeFirst(dataSet(1), { promptOverride: "genre" }))).to.equal("genre 0");
    const all = dataSet(1, { genreRatio: 100 });
    expect(promptOf(changeFirst(all, { promptOverride: "caption" }))).to.equal("caption 0");
    expect(promptOf(changeFirst(all, { genre: "" }))).to.equal("caption 0");
  });

  it("leave out what is not labeled", () => {
    expect([...trainingPrompts(changeFirst(dataSet(2), { labeled: false })).keys()]).to.deep.equal(["1"]);
  });
});

describe("sample ids", () => {
  it("are made unique, the first keeping its own", () => {
    const [sample] = dataSet(1).samples as [DataSetSample];
    const ids = withOwnIds([sample, sample, sample]).map(({ id }) => id);
    expect(ids[0]).to.equal("0");
    expect(new Set(ids).size).to.equal(3);
  });
});
