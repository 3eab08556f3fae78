/** Loads the model of a slot if needed, and renders or encodes with it. Splits batches that exceed memory. */
import { abbreviateList } from "../parameters.js";
import type { AdapterInfo, CallOptions, RenderCall } from "./addon.js";
import { maxRenderedSongs, runInBatches } from "./batches.js";
import type { LoadedModels } from "./loaded-models.js";
import type {
  EngineOptions,
  PlanarAudio,
  Rendering,
  RenderRequest,
  RenderSong,
  SongAdapter,
  SongLatents,
  SongRenderer,
  TrainingSampleRequest,
} from "./types.js";

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
