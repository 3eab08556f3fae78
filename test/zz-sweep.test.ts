import { document as description } from "./music/openapi-check.js";
import { startLiveServer, type LiveServer } from "./music/live-server.js";
import { temporaryDirectory } from "./music/tasks.js";

describe("sweep", function () {
  this.timeout(3_000_000);
  let server: LiveServer;
  before(async () => {
    server = await startLiveServer(temporaryDirectory(), {
      SVC_CHECKPOINTS: "/work/shared/parity/checkpoints",
      SVC_QUEUE_WORKERS: "2",
    });
  });
  after(() => server.close());
  it("runs", async () => {
    console.log(JSON.stringify((await server.client.get("/v1/models")).body).slice(0, 600));
    const content = description.paths["/release_task"]?.post?.requestBody?.content["application/json"] as any;
    const props = content.schema.properties as Record<string, any>;
    const base: any = { prompt: "calm piano", audio_duration: 10, batch_size: 1, inference_steps: 2, audio_format: "wav", use_random_seed: false, seed: 3 };
    const variants: [string, any, (n: string) => boolean][] = [
      ["base", { ...base, model: "acestep-v15-base", guidance_scale: 7 }, (n) => !n.startsWith("lm_")],
      ["base cfg", { ...base, model: "acestep-v15-base", guidance_scale: 1000, guidance_mode: "cfg" }, (n) => /guid|eta|moment|norm|shift|velocity|dcw|latent/.test(n)],
      ["base adg", { ...base, model: "acestep-v15-base", guidance_scale: 1000, use_adg: true, dcw_enabled: true }, (n) => /guid|eta|moment|norm|shift|velocity|dcw|latent/.test(n)],
      ["base apg max", { ...base, model: "acestep-v15-base", guidance_scale: 1000, norm_threshold: 0, eta: 10, inference_steps: 8, momentum: 1 }, (n) => /guid|eta|moment|norm|shift|velocity|dcw|latent/.test(n)],
      ["dpm", { ...base, model: "acestep-v15-base", infer_method: "dpm3m", inference_steps: 5 }, (n) => /shift|velocity|dcw|latent|timesteps/.test(n)],
      ["stork", { ...base, model: "acestep-v15-base", infer_method: "stork4", inference_steps: 5 }, (n) => /shift|velocity|dcw|latent|timesteps/.test(n)],
      ["heun", { ...base, model: "acestep-v15-base", infer_method: "heun", inference_steps: 5 }, (n) => /shift|velocity|dcw|latent|timesteps/.test(n)],
      ["sde", { ...base, model: "acestep-v15-base", infer_method: "sde", inference_steps: 5 }, (n) => /shift|velocity|dcw|latent|timesteps/.test(n)],
      ["lm", { ...base, thinking: true }, (n) => /^(lm_|min_p)/.test(n)],
      ["lm cfg max", { ...base, thinking: true, lm_cfg_scale: 1000 }, (n) => /^(lm_|min_p)/.test(n)],
    ];
    const only = process.env.ONLY?.split(",");
    for (const [label, body, takes] of variants) {
      if (only && !only.includes(label)) continue;
      for (const [name, schema] of Object.entries(props)) {
        const types = [schema.type].flat().concat((schema.anyOf ?? []).flatMap((s: any) => s.type));
        if (!types.some((t: string) => t === "number" || t === "integer") && name !== "timesteps") continue;
        if (!takes(name) || ["batch_size"].includes(name)) continue;
        const lim = [schema.minimum, schema.maximum, schema.exclusiveMinimum, ...(schema.anyOf ?? []).flatMap((s: any) => [s.minimum, s.maximum])].filter((x) => x !== undefined);
        const values: any[] = name === "timesteps" ? [[1, 1e-300, 0], [1e-300, 0], [5e-324, 0], [1, 0.9999999999999999, 0], [1e-30, 0], [1,1e-45,0]] : name === "audio_duration" ? [10] : [...new Set([...lim, 1e300, -1e300, 1e-300, 5e-324, 1e-30, 1e30, 1e38, 1e-38, 1.7976931348623157e308])];
        for (const value of values) {
          const { status, body: answer } = await server.client.post("/release_task", { ...body, [name]: value });
          if (status !== 200) { if (status >= 500) console.log(label, name, value, status, answer.detail); continue; }
          const { item } = await server.client.finished(answer.data.task_id);
          if (item.status !== 1) console.log("FAILED", label, name, JSON.stringify(value), "->", item.error);
        }
      }
      console.log("done", label);
    }
  });
});
