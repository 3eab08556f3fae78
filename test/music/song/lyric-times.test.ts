/** Lyric timestamps from a real server, with a model that supports them. */
import { expect } from "chai";
import { serverForAll, shortSong } from "../live-server.js";
import { LYRIC_MODEL, lyricModel } from "../lyric-model.js";
import { temporaryDirectory } from "../tasks.js";

const LYRICS = "[Verse]\nSleep, the tide is low\nboats lie in a row\n\n[Chorus]\nhush";

describe("timestamps for the lyrics of a song", function () {
  this.timeout(180_000);
  const server = serverForAll(lyricModel(temporaryDirectory()));

  const song = { ...shortSong, lyrics: LYRICS, get_lrc: true, use_random_seed: false, seed: 4 };

  it("timestamps are returned with get_lrc: one per line, in ascending order, within the song", async () => {
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

  it("timestamps are absent without get_lrc; if get_lrc has no effect, a warning gives the reason", async () => {
    const { client } = server;
    const unasked = await client.makeOne({ ...song, model: LYRIC_MODEL, get_lrc: false });
    const instrumental = await client.makeOne({ ...song, model: LYRIC_MODEL, lyrics: "[Instrumental]" });
    const unable = await client.makeOne({ ...song, model: "carillon-nano" });
    for (const record of [unasked, instrumental, unable]) expect(record).not.to.have.property("lrc");
    expect(unable.warnings).to.deep.equal(["get_lrc was ignored: carillon-nano cannot time these lyrics"]);
    expect(unasked.warnings).to.deep.equal([]);
    expect(instrumental.warnings).to.deep.equal(["get_lrc was ignored: the song has no lyrics"]);
  });
});
