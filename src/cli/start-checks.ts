/** Checks settings against this machine before anything starts: directories, models, devices. */
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import type { Config } from "../config.js";
import type { RuntimeInfo } from "../engine/addon.js";
import { Checkpoints } from "../engine/checkpoints.js";
import { ConfigError } from "../system/config-error.js";
import { isDirectory, makeDirectory } from "../system/directory-lock.js";

/** @throws ConfigError naming the variable */
export async function checkMusicSettings(config: Config): Promise<void> {
  await checkWritable(config.temporaryDirectory, "SVC_TMPDIR");
  if (config.storage?.directory) await checkWritable(config.storage.directory, "SVC_STORAGE");
  await checkWritable(config.trainingRoot, "SVC_TRAINING_ROOT");
  for (const root of config.audioRoots ?? []) {
    if (await isDirectory(root)) continue;
    const message = `SVC_AUDIO_ROOTS: the directory ${root} does not exist`;
    throw new ConfigError("SVC_AUDIO_ROOTS", message);
  }
  if (config.role !== "gateway") checkModels(config);
}

/** @throws ConfigError naming the variable */
export async function checkCitySettings(config: Config): Promise<void> {
  await checkWritable(config.citySavesDirectory, "CITY_SAVES_DIR");
  await access(config.citySavesDirectory, constants.R_OK).catch((error: Error) => {
    const message = `CITY_SAVES_DIR: ${config.citySavesDirectory} is not readable: ${error.message}`;
    throw new ConfigError("CITY_SAVES_DIR", message);
  });
}

/** @throws ConfigError if a configured device is missing */
export function checkDevices(config: Config, { devices }: RuntimeInfo): void {
  const names = devices.map(({ name }) => name);
  for (const [variable, device] of [
    ...config.devices.map((device) => ["SVC_DEVICE", device] as const),
    ["SVC_LM_DEVICE", config.languageModelDevice],
  ] as const) {
    const isThere =
      device === "auto" ||
      device === "cpu" ||
      (device === "cuda" ? names.length > 1 : names.includes(device));
    if (!isThere) {
      const message = `${variable} is ${device}, but the available devices are ${names.join(", ")}`;
      throw new ConfigError(variable, message);
    }
  }
}

async function checkWritable(directory: string, variable: string): Promise<void> {
  await makeDirectory(directory, variable);
  await access(directory, constants.W_OK | constants.X_OK).catch((error: Error) => {
    throw new ConfigError(variable, `${variable}: ${directory} is not writable: ${error.message}`);
  });
}

function checkModels(config: Config): void {
  const { slot1Model, slot2Model, slot3Model, languageModel } = config;
  const configured = [slot1Model, slot2Model, slot3Model, languageModel].flatMap((name) => name ?? []);
  const checkpoints = new Checkpoints(config.checkpointsDirectory, configured);
  const find = (variable: string, search: () => unknown) => {
    try {
      search();
    } catch (error) {
      throw new ConfigError(variable, `${variable}: ${(error as Error).message}`);
    }
  };
  for (const [variable, name] of [
    ["SVC_CONFIG_PATH", slot1Model],
    ["SVC_CONFIG_PATH2", slot2Model],
    ["SVC_CONFIG_PATH3", slot3Model],
  ] as const) {
    if (name !== null) find(variable, () => checkpoints.renderer(checkpoints.configured(name)));
  }
  find("SVC_LM_MODEL_PATH", () => checkpoints.languageModel(checkpoints.configured(languageModel)));
}
