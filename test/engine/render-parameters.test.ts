import { expect } from "chai";
import type { NativeRenderer, RenderJob } from "../../src/engine/addon.js";
import { Checkpoints, DEFAULT_MODEL } from "../../src/engine/checkpoints.js";
import { loadAddon } from "../../src/engine/native.js";
import { renderParameters } from "../../src/engine/render-parameters.js";
import { NO_UPLOADS } from "../../src/music/audio/uploads.js";
import { parseGenerationRequest } from "../../src/music/request/parse.js";
import { testDevice } from "./embedded.js";
import { plainJob, plainRequest } from "./plain-song.js";

const { denoise, guidance, edit } = plainRequest;

describe("render parameters that requests send to the core", () => {
  const job = plainJob;
  let renderer: NativeRenderer;

  before(async () => {
    const checkpoints = new Checkpoints("absent");
    const { model, vae, textEncoder } = checkpoints.renderer(checkpoints.configured(DEFAULT_MODEL));
    renderer = await loadAddon().loadRenderer(
      {
        ...{ model, vae, textEncoder },
        ...{ device: testDevice, dtype: "auto", quantization: "none", offload: false, offloadModel: false },
      },
      {},
    );
  });
  after(() => renderer.close());

  for (const [group, { shape }] of Object.entries(renderParameters)) {
    for (const name of Object.keys(shape)) {
      it(`the core rejects a job without ${group}.${name}`, () => {
        const { [name]: _, ...others } = job[group as keyof typeof renderParameters] as Record<
          string,
          unknown
        >;
        const lacking = { ...job, [group]: others } as RenderJob;
        expect(() => renderer.render(lacking, {})).to.throw(TypeError, `${group}.${name} is missing`);
      });
    }

    it(`the core rejects unknown parameters in ${group}`, () => {
      const own = job[group as keyof typeof renderParameters];
      const more = { ...job, [group]: { ...own, loudness: 3 } } as RenderJob;
      expect(() => renderer.render(more, {})).to.throw(
        TypeError,
        `${group}.loudness is not a known parameter`,
      );
      const without = { ...job, [group]: undefined } as unknown as RenderJob;
      expect(() => renderer.render(without, {})).to.throw(TypeError, `${group} must be an object`);
    });
  }

  it("the core accepts a job with all parameters", async () => {
    expect((await renderer.render(job, {})).samplesPerChannel).to.equal(25 * 1920);
  });

  it("render parameters come from the request or from defaults", () => {
    const context = {
      rangePolicy: "refuse",
      slotOf: () => ({ isTurbo: false, codebookSize: null }),
      uploads: NO_UPLOADS,
      drawSeed: () => 1,
    } as const;
    const fields = { infer_method: "sde", guidance_scale: 3, repaint_mode: "aggressive", timesteps: [0.5] };
    const request = parseGenerationRequest(fields, context);
    const groups = {
      denoise: { ...denoise, inferenceSteps: 8, inferMethod: "sde", timesteps: [0.5, 0] },
      guidance: { ...guidance, guidanceScale: 3 },
      edit: { ...edit, repaintMode: "aggressive" },
    };
    expect(request).to.deep.include(groups);
  });
});
