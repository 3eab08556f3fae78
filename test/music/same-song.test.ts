import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type Client, type LiveServer, type SongRecord, shortSong, startLiveServer } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

const seeded = { ...shortSong, audio_format: "wav", use_random_seed: false };

async function makeAll(client: Client, parameters: object): Promise<{ bytes: string; record: SongRecord }[]> {
  const records = await client.make({ ...seeded, ...parameters });
  return Promise.all(
    records.map(async (record) => ({ bytes: (await client.download(record)).toString("base64"), record })),
  );
}

async function makeOne(client: Client, parameters: object): Promise<string> {
  const [song] = await makeAll(client, { ...parameters, batch_size: 1 });
  return song?.bytes ?? "";
}

describe("songs of the same request", function () {
  // Each test makes many songs, which takes long on slow machines.
  this.timeout(600_000);

  for (const initLanguageModel of ["false", "true"]) {
    it(`makes the same song whatever songs were made before, with SVC_INIT_LLM=${initLanguageModel} @slow`, async () => {
      const directory = temporaryDirectory();
      const checkpoints = join(directory, "checkpoints");
      mkdirSync(checkpoints);
      cpSync("models/carillon-nano/lm", join(checkpoints, "acestep-5Hz-lm-other"), { recursive: true });
      const settings = { SVC_INIT_LLM: initLanguageModel, SVC_CHECKPOINTS: checkpoints };
      let server: LiveServer = await startLiveServer(directory, settings);
      const histories: string[] = [];
      const play = async () => histories.push(await makeOne(server.client, { seed: 2 }));
      try {
        await play();
        const other = await server.client.makeOne({
          ...seeded,
          thinking: true,
          lm_model_path: "acestep-5Hz-lm-other",
        });
        expect(other.lm_model).to.equal("acestep-5Hz-lm-other");
        await play();
        const thinking = await server.client.makeOne({ ...seeded, thinking: true });
        expect(thinking.lm_model).to.equal("carillon-nano/lm");
        expect((await server.client.post("/v1/init", { init_llm: true })).status).to.equal(200);
        await play();
        await server.close();
        server = await startLiveServer(directory, settings);
        await play();
      } finally {
        await server.close();
      }
      expect(new Set(histories).size).to.equal(1);
    });

    const tag = initLanguageModel === "true" ? "" : " @slow";
    it(`makes the same song at any position of a batch, with SVC_INIT_LLM=${initLanguageModel}${tag}`, async () => {
      const server = await startLiveServer(temporaryDirectory(), { SVC_INIT_LLM: initLanguageModel });
      try {
        for (const thinking of [false, true]) {
          const batch = await makeAll(server.client, { thinking, seed: "1,2", batch_size: 2 });
          const [alone] = await makeAll(server.client, { thinking, seed: 2, batch_size: 1 });
          expect(batch[1]?.bytes === alone?.bytes, `thinking: ${thinking}`).to.equal(true);
          expect(batch[0]?.bytes === alone?.bytes).to.equal(false);
          expect(batch[1]?.record.metas).to.deep.equal(alone?.record.metas);
          expect(batch.map(({ record }) => record.seed_value)).to.deep.equal(["1,2", "1,2"]);
          for (const { record } of batch) expect(record.metas.bpm).to.satisfy(Number.isInteger);
        }
      } finally {
        await server.close();
      }
    });
  }
});
