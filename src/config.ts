/** Reads all settings into one typed object. */
import { join } from "node:path";
import type { z } from "zod";
import { isLoopbackName } from "./http/origins.js";
import { IGNORED_SETTINGS, ignoredWarning, meaningOfIgnored } from "./ignored.js";
import { SETTINGS, type Setting } from "./settings/table.js";
import { ConfigError } from "./system/config-error.js";

type Settings = typeof SETTINGS;
type Parsed = { readonly [K in keyof Settings]: z.output<Settings[K]["schema"]> };

type Filled = "languageModelDevice" | "temporaryDirectory" | "trainingRoot" | "citySavesDirectory";

export type Config = Omit<Parsed, Filled | "audioRoots"> & {
  readonly [K in Filled]: string;
} & {
  /** Whether the music service is reachable only from this machine. */
  readonly isLocal: boolean;
  /** Directories from which requests may read audio files; null: no restriction. */
  readonly audioRoots: readonly string[] | null;
};
export type RangePolicy = Config["rangePolicy"];

/**
 * Reads all settings. Unset and blank variables get their default; SVC_ALLOWED_ORIGINS=none means an empty list.
 * @throws ConfigError naming the first invalid variable
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const values = Object.fromEntries(
    Object.entries(SETTINGS).map(([key, entry]) => [key, parseSetting(entry, environment)]),
  ) as Parsed;
  const { apiHost, audioRoots, devices, languageModelDevice, role } = values;
  if (role !== "all" && values.redisUrl === null) {
    throw new ConfigError(
      "SVC_ROLE",
      `SVC_ROLE is ${role}, which needs SVC_REDIS_URL: a fleet shares its tasks through Redis`,
    );
  }
  if (values.redisUrl !== null && values.storage === null) {
    throw new ConfigError(
      "SVC_STORAGE",
      "SVC_STORAGE is empty: servers that share tasks through SVC_REDIS_URL must share their songs too, through s3://BUCKET or file:///DIRECTORY",
    );
  }
  if (values.apiKeys.length > 0 && values.apiKey.trim() === "") {
    throw new ConfigError(
      "SVC_API_KEYS",
      "SVC_API_KEYS is set without SVC_API_KEY: set SVC_API_KEY to the first key",
    );
  }
  const isLocal = isLoopbackName(apiHost);
  return Object.freeze({
    ...values,
    languageModelDevice: languageModelDevice ?? devices[0],
    temporaryDirectory: values.temporaryDirectory ?? join(values.homeDirectory, "tmp"),
    trainingRoot: values.trainingRoot ?? join(values.homeDirectory, "training"),
    citySavesDirectory: values.citySavesDirectory ?? join(values.homeDirectory, "saves"),
    isLocal,
    audioRoots: audioRoots.length === 0 && isLocal ? null : audioRoots,
  });
}

function parseSetting({ name, fallback, schema }: Setting, environment: NodeJS.ProcessEnv): unknown {
  const variable = variableInUse(name, environment);
  const value = environment[variable]?.trim() || fallback;
  const result = schema.safeParse(value || undefined);
  if (result.success) return result.data;
  const reason = result.error.issues[0]?.message ?? "is not valid";
  throw new ConfigError(variable, `${variable} ${reason}, got "${value}"`);
}

/** Warnings about settings without effect. */
export function ignoredSettings(environment: NodeJS.ProcessEnv = process.env): string[] {
  return IGNORED_SETTINGS.filter((name) => environment[variableInUse(name, environment)]?.trim()).map(
    ignoredWarning,
  );
}

/** Name under which the variable is set: SVC_*, or the older name ACESTEP_*. */
function variableInUse(name: string, environment: NodeJS.ProcessEnv): string {
  if (environment[name] !== undefined || !name.startsWith("SVC_")) return name;
  const alias = name.replace("SVC_", "ACESTEP_");
  return environment[alias] === undefined ? name : alias;
}

/** Markdown table for SETTINGS.md. */
export function renderConfigTable(): string {
  const rows = Object.values(SETTINGS).map(
    ({ name, shownDefault, meaning }) => `| \`${name}\` | ${shownDefault} | ${meaning} |`,
  );
  const ignored = IGNORED_SETTINGS.map((name) => `| \`${name}\` | empty | ${meaningOfIgnored(name)} |`);
  return ["| Variable | Default | Meaning |", "|---|---|---|", ...rows, ...ignored].join("\n");
}
