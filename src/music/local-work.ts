/** Work on the models and files of one machine, which a fleet does not offer: downloads, data sets and training. */
import type { Config } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import type { Logger } from "../system/log.js";
import { BackgroundWork } from "./background-work.js";
import { DataSetEditor } from "./dataset/editor.js";
import { type LabelProgress, type LabelResult, labelingWork } from "./dataset/label.js";
import { type PreparationResult, preparationWork } from "./dataset/prepare.js";
import type { SampleProgress } from "./dataset/sample-work.js";
import { ModelPulls } from "./models/model-pulls.js";
import type { LabelRequest, PreparationOptions } from "./request/training-bodies.js";
import type { PermittedRoot } from "./storage/permitted-root.js";
import { AdapterTrainer } from "./training/trainer.js";

export class LocalWork {
  readonly modelPulls: ModelPulls;
  readonly training: AdapterTrainer;
  readonly dataSet: DataSetEditor;
  readonly labeling: BackgroundWork<LabelProgress, LabelResult>;
  readonly preprocessing: BackgroundWork<SampleProgress, PreparationResult>;

  constructor(
    config: Config,
    readonly engine: MusicEngine,
    private readonly root: PermittedRoot,
    log: Logger,
  ) {
    this.modelPulls = new ModelPulls(config, log);
    this.training = new AdapterTrainer(engine, root, log);
    this.dataSet = new DataSetEditor(root);
    this.labeling = new BackgroundWork("Labeling", log);
    this.preprocessing = new BackgroundWork("Preprocessing", log);
  }

  label(request: LabelRequest) {
    return this.labeling.start(() => labelingWork(this.engine, this.root, this.dataSet, request));
  }

  preprocess(request: PreparationOptions) {
    const { current } = this.dataSet;
    return this.preprocessing.start(() => preparationWork(this.engine, this.root, current, request));
  }

  async close(): Promise<void> {
    const work = [this.training, this.labeling, this.preprocessing, this.modelPulls];
    await Promise.all(work.map((kind) => kind.close()));
  }
}
