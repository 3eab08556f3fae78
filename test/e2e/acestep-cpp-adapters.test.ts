import { join } from "node:path";
import { expect } from "chai";
import { AceClient, partsOf } from "../music/acestep-cpp/ace-client.js";
import { writeLokr, writeLora } from "../music/adapter-files.js";
import { serverForAll } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

const song = {
  ...{ caption: "a short song", lyrics: "[Instrumental]", audio_codes: "1,2,3,4,5" },
  ...{ inference_steps: 1, output_format: "wav16", seed: 5 },
};

describe("adapters of acestep.cpp's clients", () => {
  const trained = temporaryDirectory();
  const collected = temporaryDirectory();
  // Other machines can reach this server, so that paths elsewhere are refused.
  const server = serverForAll({
    SVC_API_HOST: "0.0.0.0",
    SVC_ALLOW_NO_KEY: "true",
    SVC_TRAINING_ROOT: trained,
    SVC_ADAPTERS: collected,
  });
  const ace = new AceClient(server);

  before(() => {
    writeLora(join(trained, "zydeco"));
    writeLora(join(collected, "polka"), { seed: 5 });
    writeLokr(join(collected, "kron.safetensors"));
  });

  async function audioWith(more: object): Promise<Buffer> {
    const id = await ace.submit("/synth", { ...song, ...more });
    expect(await ace.ended(id), JSON.stringify(more)).to.equal("done");
    return partsOf(await ace.get(`/job?id=${id}&result=1`))[0]?.bytes as Buffer;
  }

  it("GET /props lists those of both directories", async () => {
    expect((await ace.get("/props")).body.adapters).to.deep.equal(["zydeco", "kron.safetensors", "polka"]);
  });

  it("a job names one, with or without extension, and its strength; no name, or strength 0, changes nothing", async () => {
    const plain = await audioWith({});
    for (const adapter of ["zydeco", "polka", "kron.safetensors"]) {
      expect((await audioWith({ adapter })).equals(plain), adapter).to.equal(false);
    }
    const [named, short] = [
      await audioWith({ adapter: "kron.safetensors" }),
      await audioWith({ adapter: "kron" }),
    ];
    expect(short.equals(named)).to.equal(true);
    expect((await audioWith({ adapter: "polka", adapter_scale: 0 })).equals(plain)).to.equal(true);
  });

  it("rejects an unknown name, and lists the known ones; a path is no name", async () => {
    for (const adapter of ["waltz", "../zydeco", join(collected, "polka")]) {
      const { status, body } = await ace.send("POST", "/synth", { ...song, adapter });
      expect(status).to.equal(400);
      expect(body.error).to.include("use one of zydeco, kron.safetensors, polka");
    }
  });
});
