/** From the training form to a training run: uploads songs, labels and prepares them, starts the run. */
import {
  type AvailableAdapters,
  carillon,
  type DataSetSample,
  type Parameters,
  patient,
  type TrainingStatus,
} from "./api.js";
import { t } from "./language.js";
import { Store } from "./store.js";
import { SAVED_ADAPTERS } from "./styles.js";
import type { TrainingSong } from "./training-songs.js";

export interface TrainingForm {
  values: Parameters;
  /** Songs to upload. If there are none, the folder of `values` is used. */
  songs: readonly TrainingSong[];
}

/** Lasts until the page is closed. */
export const trainingForm = new Store<TrainingForm>({ values: {}, songs: [] });
/** What the page does before a run starts; "" for nothing. */
export const trainingStage = new Store("");

export function styleNameOf({ values }: TrainingForm): string {
  return String(values.name ?? "").trim();
}

/** Why a style cannot have this name; "" if it can. */
export function nameFault(name: string): string {
  return /[/\\]|^\./.test(name) ? t("Choose a name without slashes that does not start with a dot.") : "";
}

/** Whether training with this name would replace a trained style, or what a stopped run has left of it. */
export async function isTrained(name: string): Promise<boolean> {
  const { styles } = await carillon.call<AvailableAdapters>("GET", SAVED_ADAPTERS);
  return styles.some((style) => style.name === name);
}

/** @throws Error if a song has no description */
export function checkCaptions({ values, songs }: TrainingForm): void {
  if (!values.caption && songs.some((song) => song.caption === ""))
    throw new Error(t("Say what each song sounds like, or what all of them do."));
}

/** Folders are inside the training root. */
export async function train(form: TrainingForm): Promise<void> {
  try {
    await prepareAndStart(form, styleNameOf(form));
  } finally {
    trainingStage.set("");
  }
}

async function prepareAndStart({ values, songs }: TrainingForm, name: string): Promise<void> {
  const { name: _, caption, folder, ...settings } = values;
  if (songs.length > 0) trainingStage.set(t("Sending songs…"));
  const directory = songs.length > 0 ? await sendSongs(name, songs) : folder;
  trainingStage.set(t("Reading recordings…"));
  const { samples } = await patient
    .call<{ samples: DataSetSample[] }>("POST", "/v1/dataset/scan", {
      audio_dir: directory,
      dataset_name: name,
    })
    .catch((error: unknown) => {
      // The folder may be gone.
      sent = NOTHING_SENT;
      throw error;
    });
  const silent = songs.filter(({ file }) => !samples.some(({ filename }) => filename === file.name));
  if (silent.length > 0) {
    const names = silent.map(({ file }) => file.name).join(", ");
    throw new Error(t("No sound was found in {names}. Remove it to train without it.", { names }));
  }
  await label(samples, songs, caption);
  trainingStage.set(t("Preparing samples…"));
  const tensors = `${name}/samples`;
  await patient.call("POST", "/v1/dataset/preprocess", { output_dir: tensors });
  trainingStage.set(t("Starting…"));
  const set = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null));
  await patient.call("POST", "/v1/training/start", { ...set, tensor_dir: tensors, lora_output_dir: name });
}

export type InterruptedRun = NonNullable<TrainingStatus["interrupted"]>;

/** Starts an interrupted run again, from its last checkpoint if there is one. */
export async function resume({ adapter_type, parameters, resume_from }: InterruptedRun): Promise<void> {
  trainingStage.set(t("Starting…"));
  try {
    const path = adapter_type === "lokr" ? "/v1/training/start_lokr" : "/v1/training/start";
    await patient.call("POST", path, { ...parameters, resume_from });
  } finally {
    trainingStage.set("");
  }
}

/** Gives each sample the description of its song, and those without one the common description. */
async function label(
  samples: readonly DataSetSample[],
  songs: readonly TrainingSong[],
  caption: unknown,
): Promise<void> {
  for (const [index, { labeled, filename }] of samples.entries()) {
    const own = songs.find(({ file }) => file.name === filename)?.caption;
    if (!own && (labeled || !caption)) continue;
    const { lyrics, bpm, keyscale, timesignature, language, is_instrumental } =
      await carillon.call<DataSetSample>("GET", `/v1/dataset/sample/${index}`);
    const facts = { lyrics, bpm, keyscale, timesignature, language, is_instrumental };
    await carillon.call("PUT", `/v1/dataset/sample/${index}`, { caption: own || caption, ...facts });
  }
}

const NOTHING_SENT = { folder: "", files: [] as readonly File[] };
/** Files of the form that are in a folder of the training root. */
let sent = NOTHING_SENT;

/**
 * Uploads the songs that the last folder lacks, or all of them to a new folder if the last one has others too.
 * @returns the name of the folder
 */
async function sendSongs(name: string, songs: readonly TrainingSong[]): Promise<string> {
  const files = songs.map(({ file }) => file);
  if (sent.folder === "" || sent.files.some((file) => !files.includes(file))) {
    const folder = `${name.replace(/[^\p{L}\p{N} _-]/gu, "_")} ${Date.now().toString(36)}`;
    sent = { ...NOTHING_SENT, folder };
  }
  const { folder } = sent;
  for (const file of files.filter((file) => !sent.files.includes(file))) {
    const path = `/v1/dataset/audio/${encodeURIComponent(folder)}/${encodeURIComponent(file.name)}`;
    await carillon.call("PUT", path, file);
    sent = { folder, files: [...sent.files, file] };
  }
  return folder;
}
