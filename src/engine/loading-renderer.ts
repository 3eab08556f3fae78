/** Loads the model of a slot if needed, and renders or encodes with it. Splits batches that exceed memory. */
import { abbreviateList } from "../parameters.js";
import type { AdapterInfo, CallOptions, RenderCall } from "./addon.js";
import { maxRenderedSongs } from "./batch-limits.js";
import { hasCode, type LoadedModels } from "./loaded-models.js";
import { firstOfEqualLength } from "./renderer.js";
import type {
  EngineOptions,
  PlanarAudio,
  Rendering,
  RenderRequest,
  SongAdapter,
  SongRenderer,
  TrainingSampleRequest,
} from "./types.js";

export class LoadingRenderer implements SongRenderer {
  constructor(
    private readonly loaded: LoadedModels,
    private readonly options: EngineOptions,
    private readonly log: (message: string) => void,
  ) {}

  async render(request: RenderRequest, call: RenderCall): Promise<Rendering> {
    return this.loaded.withRenderer(request.slot, call, (renderer) => renderer.render(request, call));
  }

  async *renderSongs(
    requests: readonly RenderRequest[],
    callForBatch: (first: number, count: number) => RenderCall,
  ): AsyncGenerator<Rendering> {
    const [one] = requests;
    if (one === undefined) return;
    let atOnce = maxRenderedSongs(this.options, this.loaded.deviceOf(one.slot) !== "cpu");
    for (let first = 0; first < requests.length; ) {
      const batch = firstOfEqualLength(requests.slice(first, first + atOnce));
      const call = callForBatch(first, batch.length);
      try {
        yield* await this.loaded.withRenderer(one.slot, call, (renderer) =>
          renderer.renderSongs(batch, call),
        );
        first += batch.length;
      } catch (error) {
        if (!hasCode(error, "OUT_OF_MEMORY") || batch.length === 1) throw error;
        atOnce = Math.ceil(batch.length / 2);
        this.log(`${error.message}; rendering ${atOnce} songs at a time`);
      }
    }
  }

  async encodeCodes(slotNumber: number, audio: PlanarAudio, call: CallOptions): Promise<Int32Array> {
    return this.loaded.withRenderer(slotNumber, call, (renderer) => renderer.encodeCodes(audio, call));
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
