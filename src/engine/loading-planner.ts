/** Loads the language model of a request if needed, and plans, writes or scores with it. */
import type { CallOptions } from "./addon.js";
import { maxPlannedSongs, runInBatches } from "./batches.js";
import { LanguageModelContext } from "./language-model.js";
import type { LoadedModels } from "./loaded-models.js";
import { outputTokensToReserve, Planner } from "./planner.js";
import type {
  EngineOptions,
  FormatRequest,
  LanguageModelInfo,
  LanguageRequest,
  Plan,
  PlanRequest,
  SampleRequest,
  ScoreRequest,
  SongPlanner,
  SongScores,
  SongSheet,
  TextLengthRequest,
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
