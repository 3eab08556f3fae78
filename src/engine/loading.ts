/** The engine's planner, renderer and trainer. They load the model of a request if needed. */
import { abbreviateList } from "../parameters.js";
import type {
  AdapterInfo,
  CallOptions,
  NativeAddon,
  RenderCall,
  TrainingCall,
  TrainingResult,
} from "./addon.js";
import { maxPlannedSongs, maxRenderedSongs, runInBatches } from "./batches.js";
import { LanguageModelContext } from "./language-model.js";
import type { LoadedModels } from "./loaded-models.js";
import { outputTokensToReserve, Planner } from "./planner.js";
import type {
  EngineOptions,
  FormatRequest,
  LanguageModelInfo,
  LanguageRequest,
  Plan,
  PlanarAudio,
  PlanRequest,
  Rendering,
  RenderRequest,
  RenderSong,
  SampleRequest,
  ScoreRequest,
  SongAdapter,
  SongLatents,
  SongPlanner,
  SongRenderer,
  SongScores,
  SongSheet,
  TextLengthRequest,
  Trainer,
  TrainingRequest,
  TrainingSampleRequest,
  UnderstandRequest,
} from "./types.js";

export class LoadingPlanner implements SongPlanner {
  /** Tokenizer and context length of language models, by checkpoint name, for `checkTextLength`. */
  readonly #textContexts = new Map<string, Promise<LanguageModelContext>>();

  constructor(
    private readonly loaded: LoadedModels,
    private readonly options: EngineOptions,
    private readonly log: (message: string) => void,
  ) {}

  async prepareLanguageModel(name: string | null, call: CallOptions = {}): Promise<LanguageModelInfo> {
    return (await this.loaded.ensureLanguageModel(name, call)).info;
  }

  async checkTextLength({ languageModel, fields, codesSeconds }: TextLengthRequest): Promise<void> {
    this.loaded.assertOpen();
    const checkpoint = this.loaded.languageCheckpoint(languageModel ?? null);
    const known = this.#textContexts.get(checkpoint.name);
    const reading = known ?? LanguageModelContext.load(checkpoint);
    if (known === undefined) {
      this.#textContexts.set(checkpoint.name, reading);
      reading.catch(() => this.#textContexts.delete(checkpoint.name));
    }
    await (await reading).checkTextLength(fields, outputTokensToReserve(codesSeconds));
  }

  async createSample(request: SampleRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withPlanner(request, call, (planner) => planner.createSample(request));
  }

  async formatInput(request: FormatRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withPlanner(request, call, (planner) => planner.formatInput(request));
  }

  async planSongs(requests: readonly PlanRequest[], call: CallOptions): Promise<Plan[]> {
    const atOnce = maxPlannedSongs(this.options, this.loaded.languageModelDevice !== "cpu");
    const plans: Plan[] = [];
    for await (const plan of runInBatches(requests, { atOnce, log: this.log }, (batch) =>
      this.#withPlanner(batch[0] as PlanRequest, call, (planner) => planner.plan(batch)),
    ))
      plans.push(plan);
    return plans;
  }

  #withPlanner<T>(
    { languageModel = null }: LanguageRequest,
    call: CallOptions,
    work: (planner: Planner) => Promise<T>,
  ): Promise<T> {
    return this.loaded.withLanguageModel(languageModel, call, (lm) => work(new Planner(lm, call, this.log)));
  }

  async understand(request: UnderstandRequest, call: CallOptions): Promise<SongSheet> {
    return this.#withPlanner(request, call, (planner) => planner.understand(request));
  }

  async score(request: ScoreRequest, call: CallOptions): Promise<SongScores | null> {
    return this.#withPlanner(request, call, (planner) => planner.score(request));
  }

  /** Frees the tokenizers. */
  async close(): Promise<void> {
    const contexts = await Promise.allSettled(this.#textContexts.values());
    await Promise.all(contexts.map((read) => (read.status === "fulfilled" ? read.value.close() : null)));
  }
}

export class LoadingRenderer implements SongRenderer {
  constructor(
    private readonly loaded: LoadedModels,
    private readonly options: EngineOptions,
    private readonly log: (message: string) => void,
  ) {}

  async *render(
    request: RenderRequest,
    callForBatch: (first: number, count: number) => RenderCall,
  ): AsyncGenerator<Rendering> {
    const { slot, songs } = request;
    const atOnce = maxRenderedSongs(this.options, this.loaded.deviceOf(slot) !== "cpu");
    const batches = { atOnce, takeBatch: firstOfEqualLength, log: this.log };
    yield* runInBatches(songs, batches, (batch, begin) => {
      const call = callForBatch(begin, batch.length);
      return this.loaded.withRenderer(slot, call, (renderer) =>
        renderer.render({ ...request, songs: batch }, call),
      );
    });
  }

  async encodeCodes(
    slot: number,
    recording: PlanarAudio | SongLatents,
    call: CallOptions,
  ): Promise<Int32Array> {
    return this.loaded.withRenderer(slot, call, (renderer) => renderer.encodeCodes(recording, call));
  }

  async encodeLatents(slot: number, audio: PlanarAudio, call: CallOptions): Promise<SongLatents> {
    return this.loaded.withRenderer(slot, call, (renderer) => renderer.encodeLatents(audio, call));
  }

  async decodeLatents(slot: number, latents: SongLatents, call: CallOptions): Promise<PlanarAudio> {
    return this.loaded.withRenderer(slot, call, (renderer) => renderer.decodeLatents(latents, call));
  }

  async prepareSample(request: TrainingSampleRequest, path: string, call: CallOptions): Promise<void> {
    return this.loaded.withRenderer(1, call, (renderer) => renderer.prepareSample(request, path, call));
  }

  async inspectAdapter(adapter: SongAdapter, call: CallOptions = {}): Promise<AdapterInfo> {
    const info = await this.loaded.withRenderer(1, call, ({ adapters }) => adapters.inspect(adapter, call));
    const { unmatchedTensors: unmatched, warnings } = info;
    if (unmatched.length > 0) {
      const names = abbreviateList(unmatched);
      this.log(`adapter ${adapter.name} has tensors that match nothing in the model: ${names}`);
    }
    for (const warning of warnings) this.log(`adapter ${adapter.name}: ${warning}`);
    return info;
  }
}

/** The first songs, up to the first with another length: the songs of a batch are equally long. */
function firstOfEqualLength(songs: readonly RenderSong[]): readonly RenderSong[] {
  const lengthOf = ({ metadata, codes }: RenderSong) => `${metadata.durationSeconds} ${codes?.length}`;
  const end = songs.findIndex((song) => lengthOf(song) !== lengthOf(songs[0] as RenderSong));
  return end < 0 ? songs : songs.slice(0, end);
}

export class LoadingTrainer implements Trainer {
  readonly #running = new Set<Promise<unknown>>();
  readonly #stopping = new AbortController();

  constructor(
    private readonly addon: NativeAddon,
    private readonly loaded: LoadedModels,
    private readonly options: EngineOptions,
  ) {}

  async train(request: TrainingRequest, call: TrainingCall = {}): Promise<TrainingResult> {
    // The run reads its own copy of the weights, so it does not hold the loaded model.
    const { name, model } = await this.loaded.withRenderer(1, call, async (renderer) => renderer);
    const device = this.loaded.deviceOf(1);
    const signal = AbortSignal.any([...(call.signal ? [call.signal] : []), this.#stopping.signal]);
    const placement = { device, dtype: this.options.dtype };
    const options = { ...request, ...placement, modelName: name, model };
    const running = this.loaded.reportDeviceLoss(() => this.addon.train(options, { ...call, signal }));
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Stops training and waits until its checkpoint is saved. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#running);
  }
}
