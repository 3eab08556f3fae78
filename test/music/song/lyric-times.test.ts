/** When lyrics are sung, of a real server with a model that can tell. */
import { expect } from "chai";
import { type LiveServer, shortSong, startLiveServer } from "../live-server.js";
import { LYRIC_MODEL, lyricModel } from "../lyric-model.js";
import { temporaryDirectory } from "../tasks.js";

const LYRICS = "[Verse]\nSleep, the tide is low\nboats lie in a row\n\n[Chorus]\nhush";

describe("lyric times", function () {
  this.timeout(180_000);
  let server: LiveServer;
  before(async () => {
    server = await startLiveServer(temporaryDirectory(), lyricModel(temporaryDirectory()));
  });
  after(() => server?.close());

  const song = { ...shortSong, lyrics: LYRICS, get_lrc: true };

  it("stand with a song that was asked for them, a line each, in order and within it", async () => {
    const { client } = server;
    const id = await client.submit({ ...song, model: LYRIC_MODEL });
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
    const unasked = await client.makeOne({ ...song, model: LYRIC_MODEL, get_lrc: false });
    const instrumental = await client.makeOne({ ...song, model: LYRIC_MODEL, lyrics: "[Instrumental]" });
    const unable = await client.makeOne({ ...song, model: "carillon-nano" });
    for (const record of [unasked, instrumental, unable]) expect(record).not.to.have.property("lrc");
    expect(unable.warnings).to.deep.equal([
      "carillon-nano cannot tell when these lyrics are sung: the song has no lrc",
    ]);
    expect([...unasked.warnings, ...instrumental.warnings]).to.deep.equal([]);
  });
});
