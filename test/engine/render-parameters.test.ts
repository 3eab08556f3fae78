import { expect } from "chai";
import type { NativeRenderer, RenderJob } from "../../src/engine/addon.js";
import { Checkpoints, DEFAULT_MODEL } from "../../src/engine/checkpoints.js";
import { loadAddon } from "../../src/engine/native.js";
import { renderParameters, renderParametersOf } from "../../src/engine/render-parameters.js";
import { NO_UPLOADS } from "../../src/music/audio/uploads.js";
import { parseGenerationRequest } from "../../src/music/request/parse.js";
import { testDevice } from "./embedded.js";
import { plainSong } from "./plain-song.js";

const { denoise, guidance, edit } = plainSong;

describe("the parameters of rendering", () => {
  const job: RenderJob = {
    ...{ task: "text2music", denoise, guidance, edit, seeds: [1], frames: 25 },
    ...{ audioCodes: null, source: null, referenceAudio: null, timedLyrics: null },
    prompts: { text: Int32Array.of(1), lyrics: Int32Array.of(1), plainText: null },
  };
  let renderer: NativeRenderer;

  before(async () => {
    const checkpoints = new Checkpoints("absent");
    const { directory, vaeDirectory, textEncoderDirectory } = checkpoints.renderer(
      checkpoints.configured(DEFAULT_MODEL),
    );
    renderer = await loadAddon().loadRenderer(
      {
        ...{ modelDirectory: directory, vaeDirectory, textEncoderDirectory },
        ...{ device: testDevice, dtype: "auto", quantization: "none", offload: false, offloadModel: false },
      },
      {},
    );
  });
  after(() => renderer.close());

  for (const [group, { shape }] of Object.entries(renderParameters)) {
    for (const name of Object.keys(shape)) {
      it(`reach the core: it does not render without ${group}.${name}`, () => {
        const { [name]: _, ...others } = job[group as keyof typeof renderParameters] as Record<
          string,
          unknown
        >;
        const lacking = { ...job, [group]: others } as RenderJob;
        expect(() => renderer.render(lacking, {})).to.throw(TypeError, `${group}.${name} is missing`);
      });
    }

    it(`are refused by the core where it does not know them: ${group}`, () => {
      const own = job[group as keyof typeof renderParameters];
      const more = { ...job, [group]: { ...own, loudness: 3 } } as RenderJob;
      expect(() => renderer.render(more, {})).to.throw(TypeError, `${group}.loudness reaches nothing`);
      const without = { ...job, [group]: undefined } as unknown as RenderJob;
      expect(() => renderer.render(without, {})).to.throw(TypeError, `${group} must be an object`);
    });
  }

  it("render as they are, all groups whole", async () => {
    expect((await renderer.render(job, {})).samplesPerChannel).to.equal(25 * 1920);
  });

  it("come out of a request as its client set them, else at their defaults", () => {
    const context = {
      rangePolicy: "refuse",
      isTurbo: () => false,
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
    expect(renderParametersOf(request)).to.deep.equal(groups);
    const { coverNoiseStrength: _, ...ofEarlierVersion } = request;
    expect(renderParametersOf(ofEarlierVersion as typeof request)).to.deep.equal(groups);
  });
});
