import { expect } from "chai";
import { oneSecondSong, serverForAll, shortSong } from "../live-server.js";
import { parse, parsed } from "../request/request-parsing.js";

const warningsOf = (fields: object) => parse({ ...fields }).warnings;

describe("facts in the prompt, such as tempo and key", () => {
  it("warnings at submission list the facts found in the prompt and quote its words", () => {
    expect(warningsOf({ prompt: "75bpm waltz in F# min" })).to.have.members([
      'bpm 75 was taken from the prompt\'s "75bpm"',
      'key_scale F# minor was taken from the prompt\'s "F# min"',
      'time_signature 3 was taken from the prompt\'s "waltz"',
    ]);
    expect(warningsOf({ prompt: "lento" })).to.deep.equal(['bpm was not set: 58–80 is usual for "lento"']);
  });

  it("a field overrides a fact in the prompt, and a warning reports the contradiction", () => {
    const fields = { bpm: 90, key_scale: "Am", time_signature: "4/4" };
    expect(warningsOf({ ...fields, prompt: "a slow song, 90 bpm in A minor" })).to.deep.equal([]);
    expect(warningsOf({ ...fields, prompt: "120 bpm waltz in C major" })).to.have.members([
      'bpm 90 was used as sent, although the prompt says "120 bpm"',
      'key_scale A minor was used as sent, although the prompt says "C major"',
      'time_signature 4 was used as sent, although the prompt says "waltz"',
    ]);
  });

  it("facts in sample_query replace those in the prompt", () => {
    const { stated } = parsed({ sample_query: "house at 124 in G minor", prompt: "90 bpm" });
    expect(stated).to.deep.equal({ tempo: { min: 124, max: 124 }, keyScale: "G minor", timeSignature: "" });
  });

  it("a genre in the prompt sets no tempo if there is a source or audio codes", () => {
    const source = { src_audio_path: "a.wav", task_type: "cover" };
    expect(parsed({ ...source, prompt: "techno" }).stated.tempo).to.equal(null);
    expect(parsed({ ...source, prompt: "techno at 130 bpm" }).stated.tempo).to.deep.equal({
      min: 130,
      max: 130,
    });
    const codes = { audio_code_string: "1,2,3", thinking: true };
    expect(parsed({ ...codes, prompt: "techno" }).stated.tempo).to.equal(null);
  });

  describe("facts stated in the prompt of a song", () => {
    const server = serverForAll({ SVC_INIT_LLM: "false" });

    const stated = { ...shortSong, prompt: "75bpm waltz in F# min" };
    const facts = { bpm: 75, keyscale: "F# minor", timesignature: "3" };

    for (const thinking of [false, true]) {
      it(`with thinking ${thinking}, facts in the prompt set the song's metadata and are listed in its warnings`, async () => {
        const record = await server.client.makeOne({ ...stated, thinking });
        expect(record.metas).to.include(facts);
        expect(record.warnings).to.include('bpm 75 was taken from the prompt\'s "75bpm"');
        const set = await server.client.makeOne({ ...stated, thinking, bpm: 140, key_scale: "C major" });
        expect(set.metas).to.include({ bpm: 140, keyscale: "C major", timesignature: "3" });
      });
    }

    it("a tempo in the prompt makes the same song as the field bpm", async () => {
      const seeded = {
        ...oneSecondSong,
        prompt: "75bpm",
        use_random_seed: false,
        seed: 5,
        audio_format: "wav",
      };
      const audioOf = async (fields: object) =>
        (await server.client.download(await server.client.makeOne({ ...seeded, ...fields }))).toString(
          "base64",
        );
      expect(await audioOf({})).to.equal(await audioOf({ bpm: 75 }));
    });

    it("the seed determines the tempo if the prompt only says slow or fast", async () => {
      const slow = { ...shortSong, prompt: "a slow song", use_random_seed: false };
      const batch = await server.client.make({ ...slow, batch_size: 2, seed: "3,4" });
      const alone = await server.client.makeOne({ ...slow, seed: 4 });
      expect(batch.map(({ metas }) => (metas as { bpm: number }).bpm)).to.deep.equal([61, 62]);
      expect(alone.metas.bpm).to.equal(62);
    });

    it("/format_input and /v1/create_sample use facts in the prompt", async () => {
      const written = await server.client.post("/format_input", { prompt: stated.prompt });
      expect(written.body.data).to.include({ bpm: 75, key_scale: "F# minor", time_signature: "3" });
      const sample = await server.client.post("/v1/create_sample", { query: stated.prompt });
      expect(sample.body.data).to.include({ bpm: 75 });
      expect(sample.body.data.warnings.join()).to.include("F# min");
    });

    it("analysis_only uses facts in the prompt", async () => {
      const record = await server.client.finished(
        await server.client.submit({ prompt: stated.prompt, analysis_only: true }),
      );
      expect(record.records[0]).to.include(facts);
    });
  });
});
