/** Loads the language model of a request if needed, and plans, writes or scores with it. */
import type { CallOptions } from "./addon.js";
import { maxPlannedSongs } from "./batch-limits.js";
import { LanguageModelContext } from "./language-model.js";
import { hasCode, type LoadedModels } from "./loaded-models.js";
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
    for (let begin = 0; begin < requests.length; begin += atOnce)
      plans.push(...(await this.#planTogether(requests.slice(begin, begin + atOnce), call)));
    return plans;
  }

  #withPlanner<T>(
    { languageModel = null }: LanguageRequest,
    call: CallOptions,
    work: (planner: Planner) => Promise<T>,
  ): Promise<T> {
    return this.loaded.withLanguageModel(languageModel, call, (lm) => work(new Planner(lm, call, this.log)));
  }

  /** Plans songs as one batch. If memory runs out, splits the batch in half and plans both halves. */
  async #planTogether(requests: readonly PlanRequest[], call: CallOptions): Promise<Plan[]> {
    const [first] = requests;
    if (first === undefined) return [];
    try {
      return await this.#withPlanner(first, call, (planner) => planner.plan(requests));
    } catch (error) {
      if (!hasCode(error, "OUT_OF_MEMORY") || requests.length === 1) throw error;
      const half = Math.ceil(requests.length / 2);
      this.log(`${error.message}; planning ${half} songs at a time`);
      const plans = await this.#planTogether(requests.slice(0, half), call);
      return [...plans, ...(await this.#planTogether(requests.slice(half), call))];
    }
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
