/** When lyrics are sung, of a real server: the embedded model, told that some of its heads follow them. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { type LiveServer, shortSong, startLiveServer } from "../live-server.js";
import { temporaryDirectory } from "../tasks.js";

const NANO = fileURLToPath(new URL("../../../models/carillon-nano", import.meta.url));
const LYRICS = "[Verse]\nSleep, the tide is low\nboats lie in a row\n\n[Chorus]\nhush";

/** Makes heads listen to one word at a time, as those of trained models do: queries 16 times as long, in bfloat16. */
function sharpen(file: string, tensor: string): void {
  const bytes = readFileSync(file);
  const headerBytes = Number(bytes.readBigUInt64LE());
  const { [tensor]: found } = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes));
  const [begin, end] = found.data_offsets.map((offset: number) => 8 + headerBytes + offset);
  const exponent = 4 << 7;
  for (let at = begin; at < end; at += 2) bytes.writeUInt16LE(bytes.readUInt16LE(at) + exponent, at);
  writeFileSync(file, bytes);
}

describe("lyric times", function () {
  this.timeout(180_000);
  const checkpoints = temporaryDirectory();
  let server: LiveServer;
  before(async () => {
    const model = join(checkpoints, "follows-lyrics");
    cpSync(NANO, model, { recursive: true });
    const path = join(model, "config.json");
    const heads = { lyric_alignment_layers_config: { 1: [0, 1, 2, 3, 4, 5, 6, 7] } };
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), ...heads }));
    sharpen(join(model, "model.safetensors"), "decoder.layers.1.cross_attn.q_norm.weight");
    const settings = { SVC_CHECKPOINTS: checkpoints, SVC_CONFIG_PATH2: "follows-lyrics" };
    server = await startLiveServer(temporaryDirectory(), settings);
  });
  after(() => server?.close());

  const song = { ...shortSong, lyrics: LYRICS, get_lrc: true };

  it("stand with a song that was asked for them, a line each, in order and within it", async () => {
    const { client } = server;
    const id = await client.submit({ ...song, model: "follows-lyrics" });
    const [record] = (await client.finished(id)).records;
    const lines = String(record?.lrc).split("\n");
    expect(lines.map((line) => line.replace(/^\[\d\d:\d\d\.\d\d\]/, ""))).to.deep.equal([
      "Sleep, the tide is low",
      "boats lie in a row",
      "hush",
    ]);
    const stamps = lines.map((line) => line.slice(0, 10));
    expect(stamps).to.deep.equal(stamps.toSorted());
    expect(stamps.every((stamp) => stamp >= "[00:00.00]" && stamp < "[00:10.00]")).to.equal(true);
    const task = (await client.get(`/v1/tasks/${id}`)).body.data;
    expect(task.songs[0].lrc).to.equal(record?.lrc);
    expect(task.parameters.get_lrc).to.equal(true);
  });

  it("are absent where nobody asks, where nothing is sung, and with a word where the model cannot tell", async () => {
    const { client } = server;
    const unasked = await client.makeOne({ ...song, model: "follows-lyrics", get_lrc: false });
    const instrumental = await client.makeOne({ ...song, model: "follows-lyrics", lyrics: "[Instrumental]" });
    const unable = await client.makeOne({ ...song, model: "carillon-nano" });
    for (const record of [unasked, instrumental, unable]) expect(record).not.to.have.property("lrc");
    expect(unable.warnings).to.deep.equal([
      "carillon-nano cannot tell when these lyrics are sung: the song has no lrc",
    ]);
    expect([...unasked.warnings, ...instrumental.warnings]).to.deep.equal([]);
  });
});
