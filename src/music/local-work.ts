/** Work on the models and files of one machine, which a fleet does not offer: downloads, data sets and training. */
import type { Config } from "../config.js";
import type { MusicEngine } from "../engine/types.js";
import type { Logger } from "../system/log.js";
import { DataSetEditor } from "./dataset/editor.js";
import { LabelTasks } from "./dataset/label.js";
import { PreparationTasks } from "./dataset/prepare.js";
import { ModelPulls } from "./models/model-pulls.js";
import type { PermittedRoot } from "./storage/permitted-root.js";
import { AdapterTrainer } from "./training/trainer.js";

export class LocalWork {
  readonly modelPulls: ModelPulls;
  readonly training: AdapterTrainer;
  readonly dataSet: DataSetEditor;
  readonly labeling: LabelTasks;
  readonly preparations: PreparationTasks;

  constructor(
    config: Config,
    readonly engine: MusicEngine,
    root: PermittedRoot,
    log: Logger,
  ) {
    this.modelPulls = new ModelPulls(config, log);
    this.training = new AdapterTrainer(engine, root, log);
    this.dataSet = new DataSetEditor(root);
    this.labeling = new LabelTasks(engine, root, this.dataSet, log);
    this.preparations = new PreparationTasks(engine, root, log);
  }

  async close(): Promise<void> {
    await Promise.all([
      this.training.close(),
      this.labeling.close(),
      this.preparations.close(),
      this.modelPulls.close(),
    ]);
  }
}
