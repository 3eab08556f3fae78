/**
 * Every setting, parsed once. The table below is the only place where a variable's name, default and
 * rule stand; the table in SETTINGS.md is rendered from them.
 */
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { DEFAULT_LANGUAGE_MODEL, DEFAULT_MODEL } from "./engine/checkpoints.js";
import { isLoopbackName } from "./http/origins.js";

interface Setting<S extends z.ZodType = z.ZodType> {
  /** The environment variable. */
  name: string;
  schema: S;
  /** What SETTINGS.md shows as default. */
  shownDefault: string;
  meaning: string;
}

function setting<S extends z.ZodType>(
  name: string,
  schema: S,
  shownDefault: string,
  meaning: string,
): Setting<S> {
  return { name, schema, shownDefault, meaning };
}

const TRUE_WORDS = ["1", "true", "yes", "y", "on"];
const FALSE_WORDS = ["0", "false", "no", "n", "off"];
const BYTES_PER_MEGABYTE = 2 ** 20;
const SECONDS_PER_MINUTE = 60;
const SECONDS_PER_HOUR = 3600;

const isTrueWord = (text: string) => TRUE_WORDS.includes(text.toLowerCase());

const text = (fallback: string) => z.string().default(fallback);
const optionalText = z.string().nullable().default(null);
const trueOrFalse = z
  .string()
  .refine((word) => isTrueWord(word) || FALSE_WORDS.includes(word.toLowerCase()), "must be true or false");
const switchedOn = (fallback: boolean) => trueOrFalse.transform(isTrueWord).default(fallback);
const directory = (fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((path) => resolve(path));
const oneOf = <const T extends string>(values: readonly [T, ...T[]], fallback: T) =>
  z.preprocess(lowerCase, z.enum(values, `must be one of ${values.join(", ")}`)).prefault(fallback);
const list = (separator: string, fallback: string) =>
  z
    .string()
    .default(fallback)
    .transform((value) => value.split(separator).flatMap((item) => item.trim() || []));
const names = list(",", "none").transform((items) => items.filter((item) => item !== "none"));

/** Decimal text; the pattern keeps out what Number() would read otherwise, such as 0x50. */
const numberText = z
  .string()
  .regex(/^[+-]?(\d+\.?\d*|\.\d+)$/, "must be a number")
  .transform(Number);
const integer = (fallback: number, min: number, max: number = Number.MAX_SAFE_INTEGER) => {
  const rule = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `from ${min} to ${max}`;
  const message = `must be an integer ${rule}`;
  return numberText.pipe(z.int(message).min(min, message).max(max, message)).default(fallback);
};
const amount = (fallback: number, min: number) =>
  numberText.pipe(z.number().min(min, `must be ${min} or more`)).default(fallback);
const megabytes = (fallback: number) =>
  amount(fallback, 0).transform((count) => Math.floor(count * BYTES_PER_MEGABYTE));
/** In seconds; null for auto. */
const minutesOrAuto = z
  .preprocess(lowerCase, z.string().regex(/^(auto|\d+(\.\d+)?)$/, "must be auto, or minutes from 0"))
  .transform((word) => (word === "auto" ? null : Number(word) * SECONDS_PER_MINUTE))
  .prefault("auto");
const device = z.preprocess(
  lowerCase,
  z.string().regex(/^(auto|cpu|cuda(:\d+)?)$/, "must be auto, cpu, cuda or cuda:N"),
);
/** One for each slot; the last serves the others too. */
const devices = z.preprocess(
  (value) => (typeof value === "string" ? value.split(",").map((name) => name.trim()) : value),
  z.tuple([device], device).default(["auto"]),
);

function lowerCase(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase() : value;
}

const CACHE = ".cache/carillon";
/** Its default lies in SVC_HOME. */
const directoryAtHome = z
  .string()
  .transform((path) => resolve(path))
  .nullable()
  .default(null);
const EMPTY = "empty";

/** Settings in the order of the table in SETTINGS.md; the key is the property of `Config`. */
const SETTINGS = {
  apiHost: setting("SVC_API_HOST", text("127.0.0.1"), "127.0.0.1", "bind host of the music service"),
  apiPort: setting("SVC_API_PORT", integer(8001, 0, 65535), "8001", "bind port; 0 takes any free one"),
  apiKey: setting("SVC_API_KEY", text(""), EMPTY, "API key; empty disables authentication"),
  apiKeys: setting(
    "SVC_API_KEYS",
    list(",", ""),
    EMPTY,
    "further keys beside SVC_API_KEY, comma-separated: the waiting tasks of each key take turns with those of the others",
  ),
  redisUrl: setting(
    "SVC_REDIS_URL",
    z
      .string()
      .regex(/^rediss?:\/\/\S+$/, "must be a URL such as redis://:password@host:6379/0, rediss:// with TLS")
      .nullable()
      .default(null),
    EMPTY,
    "Redis or Valkey that the servers of a fleet share their tasks by, with its password in the URL, rediss:// for TLS; empty: this server works alone",
  ),
  storage: setting(
    "SVC_STORAGE",
    z
      .string()
      .regex(
        /^(s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[\w.\-/]*)?|file:\/\/\/\S+)$/,
        "must be s3://BUCKET, s3://BUCKET/PREFIX or file:///SHARED/DIRECTORY",
      )
      .transform((url) =>
        url.startsWith("file:")
          ? { directory: fileURLToPath(url), bucket: null }
          : { directory: null, bucket: url },
      )
      .nullable()
      .default(null),
    EMPTY,
    "where the servers of a fleet keep songs, uploaded files and adapters: `s3://bucket/prefix`, with the AWS SDK's usual environment (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL_S3`), or `file:///directory` that all of them mount at the same path; empty: SVC_TMPDIR. With SVC_REDIS_URL it must be set",
  ),
  storageUrls: setting(
    "SVC_STORAGE_URLS",
    oneOf(["proxy", "signed"], "proxy"),
    "proxy",
    "how clients get songs out of S3: proxy, through this server, or signed, redirected to an address of the store that is good for an hour",
  ),
  role: setting(
    "SVC_ROLE",
    oneOf(["all", "gateway", "worker"], "all"),
    "all",
    "what this server does in a fleet: all, gateway (answers clients, has no models), or worker (makes songs; serves `/health` and `/metrics` alone). Other roles than all need SVC_REDIS_URL",
  ),
  healthRequiresKey: setting(
    "SVC_HEALTH_REQUIRES_KEY",
    switchedOn(false),
    "false",
    "whether `/health` demands the key; a wrong key is refused in any case",
  ),
  allowedOrigins: setting(
    "SVC_ALLOWED_ORIGINS",
    names,
    "none",
    "web origins that may call the service beside those of this machine, comma-separated; `null`: pages opened from a file, and any page in a sandboxed frame; `*`: all; `none`: no other",
  ),
  allowedHosts: setting(
    "SVC_ALLOWED_HOSTS",
    names,
    "none",
    "names beside those of this machine that requests may be sent to, comma-separated, without ports: of a reverse proxy that passes its own on; `*`: all. Asked only where SVC_API_HOST is a loopback address",
  ),
  allowsNoKey: setting(
    "SVC_ALLOW_NO_KEY",
    switchedOn(false),
    "false",
    "start without a key although SVC_API_HOST is no loopback address: anyone who reaches it may use the service",
  ),
  apiWorkers: setting(
    "SVC_API_WORKERS",
    integer(1, 1),
    "1",
    "accepted for compatibility: one process answers all requests, and none waits for another; songs at a time are SVC_QUEUE_WORKERS",
  ),
  slot1Model: setting(
    "SVC_CONFIG_PATH",
    text(DEFAULT_MODEL),
    DEFAULT_MODEL,
    "primary DiT model: a name in SVC_CHECKPOINTS or a path; the embedded model where the default is absent",
  ),
  slot2Model: setting("SVC_CONFIG_PATH2", optionalText, EMPTY, "second DiT model; enables slot 2"),
  slot3Model: setting("SVC_CONFIG_PATH3", optionalText, EMPTY, "third DiT model; enables slot 3"),
  checkpointsDirectory: setting(
    "SVC_CHECKPOINTS",
    directory(`${CACHE}/checkpoints`),
    `${CACHE}/checkpoints`,
    "directory of checkpoints, one model a folder",
  ),
  hubUrl: setting(
    "HF_ENDPOINT",
    text("https://huggingface.co"),
    "https://huggingface.co",
    "model hub, or a mirror of it, that models are pulled from",
  ),
  hubToken: setting("HF_TOKEN", optionalText, EMPTY, "token of the hub, for private and gated repositories"),
  devices: setting(
    "SVC_DEVICE",
    devices,
    "auto",
    "device of the models: auto, cpu, cuda or cuda:N; several, comma-separated, are for slots 1, 2 and 3 (each GPU renders beside the others; see SVC_QUEUE_WORKERS). auto takes the freest GPU, for each model another while there are any",
  ),
  useFlashAttention: setting("SVC_USE_FLASH_ATTENTION", switchedOn(true), "true", "use flash attention"),
  quantization: setting(
    "SVC_QUANTIZATION",
    oneOf(["none", "int8", "int4"], "none"),
    "none",
    "keep the weights of DiT, text encoder and language model in codes of 8 or 4 bits: less memory, a little less exact; none keeps them as their files do, codes of a .gguf file included",
  ),
  offloadToCpu: setting("SVC_OFFLOAD_TO_CPU", switchedOn(false), "false", "keep idle models in main memory"),
  offloadDitToCpu: setting(
    "SVC_OFFLOAD_DIT_TO_CPU",
    switchedOn(false),
    "false",
    "keep the idle DiT in main memory",
  ),
  modelIdleSeconds: setting(
    "SVC_MODEL_IDLE_MINUTES",
    minutesOrAuto,
    "auto",
    "a model that nobody used for so long leaves memory, and loads again when it is next used; 0: it stays. auto: 10 on a graphics card of less than 32 GiB, which has other uses too, 0 elsewhere. One with adapters stays in any case",
  ),
  initLanguageModel: setting(
    "SVC_INIT_LLM",
    z
      .preprocess(lowerCase, z.string())
      .refine((word) => [...TRUE_WORDS, ...FALSE_WORDS, "auto"].includes(word), "must be auto, true or false")
      .transform(startUpChoice)
      .prefault("auto"),
    "auto",
    "whether the language model is loaded at start, and plans what a song leaves open without being asked: auto (decided by the device), true, or false (only requests that need it load it)",
  ),
  languageModel: setting(
    "SVC_LM_MODEL_PATH",
    text(DEFAULT_LANGUAGE_MODEL),
    DEFAULT_LANGUAGE_MODEL,
    "default 5Hz language model: a name in SVC_CHECKPOINTS or a path",
  ),
  languageModelBackend: setting(
    "SVC_LM_BACKEND",
    oneOf(["vllm", "pt", "mlx"], "vllm"),
    "vllm",
    "accepted for compatibility (vllm, pt or mlx): there is one built-in backend",
  ),
  languageModelDevice: setting(
    "SVC_LM_DEVICE",
    device.nullable().default(null),
    "SVC_DEVICE",
    "device of the language model; unset: that of slot 1",
  ),
  offloadLanguageModelToCpu: setting(
    "SVC_LM_OFFLOAD_TO_CPU",
    switchedOn(false),
    "false",
    "keep the idle language model in main memory",
  ),
  queueMaxSize: setting(
    "SVC_QUEUE_MAXSIZE",
    integer(200, 0),
    "200",
    "tasks that may wait; 0 sets no limit; a full queue answers 429",
  ),
  queueWorkers: setting("SVC_QUEUE_WORKERS", integer(1, 1), "1", "number of queue workers"),
  averageJobSeconds: setting(
    "SVC_AVG_JOB_SECONDS",
    amount(5, 0),
    "5.0",
    "first estimate of a job's duration, in seconds",
  ),
  averageWindow: setting("SVC_AVG_WINDOW", integer(50, 1), "50", "jobs over which the duration is averaged"),
  jobTimeoutSeconds: setting(
    "SVC_JOB_TIMEOUT_SECONDS",
    amount(3600, 0),
    "3600",
    "a job that runs longer fails; 0 sets no limit",
  ),
  graceSeconds: setting(
    "SVC_GRACE_SECONDS",
    amount(4, 0),
    "4",
    "what running tasks get to finish once the server is told to stop; those that do not finish go back into the queue. Whoever stops it must wait 3 seconds longer",
  ),
  logLevel: setting(
    "SVC_LOG_LEVEL",
    oneOf(["silent", "error", "warn", "info", "debug"], "info"),
    "info",
    "what the log on stderr tells: silent, error, warn, info or debug",
  ),
  rangePolicy: setting(
    "SVC_RANGE_POLICY",
    oneOf(["refuse", "clamp"], "clamp"),
    "clamp",
    "a number outside its range: clamp it and say so in `warnings`, as clients of other servers expect, or refuse it (status 400)",
  ),
  homeDirectory: setting(
    "SVC_HOME",
    directory(CACHE),
    CACHE,
    "directory of what one server keeps: SVC_TMPDIR, SVC_TRAINING_ROOT and CITY_SAVES_DIR lie there unless they are set. A second server on the same machine needs its own; checkpoints are shared",
  ),
  temporaryDirectory: setting(
    "SVC_TMPDIR",
    directoryAtHome,
    `${CACHE}/tmp`,
    "directory of generated audio, uploads and the task store",
  ),
  audioRoots: setting(
    "SVC_AUDIO_ROOTS",
    list(delimiter, "").transform((roots) => roots.map((root) => resolve(root))),
    EMPTY,
    `directories that audio paths in requests may point into, separated by \`${delimiter}\`; empty: any where SVC_API_HOST is a loopback address, none otherwise`,
  ),
  trainingRoot: setting(
    "SVC_TRAINING_ROOT",
    directoryAtHome,
    `${CACHE}/training`,
    "directory that all paths of training requests must lie in (songs, tensors, outputs, exports, data sets); relative ones start there. Adapters are loaded from there, and from any absolute path where SVC_API_HOST is a loopback address. Made at start",
  ),
  audioMaxAgeSeconds: setting(
    "SVC_AUDIO_MAX_AGE_HOURS",
    amount(168, 0).transform((hours) => hours * SECONDS_PER_HOUR),
    "168",
    "generated audio older than this is deleted, favourites never; 0 keeps it",
  ),
  audioMaxTotalBytes: setting(
    "SVC_AUDIO_MAX_TOTAL_MB",
    megabytes(10240),
    "10240",
    "the oldest audio is deleted beyond this total size, favourites never; 0 sets no limit",
  ),
  bodyMaxBytes: setting(
    "SVC_BODY_MAX_MB",
    megabytes(1),
    "1",
    "largest request body, uploaded files not counted",
  ),
  sourceMaxSeconds: setting(
    "SVC_SOURCE_MAX_SECONDS",
    amount(600, 1),
    "600",
    "longest source or reference audio, uploaded or named by its path",
  ),
  uploadMaxBytes: setting("SVC_UPLOAD_MAX_MB", megabytes(200), "200", "largest uploaded file"),
  uploadMaxFiles: setting("SVC_UPLOAD_MAX_FILES", integer(4, 0), "4", "most files in one request"),
  tritonCacheDirectory: setting(
    "TRITON_CACHE_DIR",
    directory(`${CACHE}/triton`),
    `${CACHE}/triton`,
    "cache of kernels compiled at run time, where the inference runtime makes any",
  ),
  inductorCacheDirectory: setting(
    "TORCHINDUCTOR_CACHE_DIR",
    directory(`${CACHE}/torchinductor`),
    `${CACHE}/torchinductor`,
    "cache of graphs compiled at run time, where the inference runtime makes any",
  ),
  libtorch: setting(
    "LIBTORCH",
    optionalText,
    EMPTY,
    "libtorch directory that set-up uses instead of searching for one",
  ),
  cityPort: setting("CITY_BRIDGE_PORT", integer(32123, 0, 65535), "32123", "port of the city bridge"),
  cityGameUrl: setting(
    "CITY_GAME_URL",
    z.url("must be a URL such as http://127.0.0.1:32124").nullable().default(null),
    EMPTY,
    "bridge of a running game to forward to; empty means the embedded city",
  ),
  citySavesDirectory: setting(
    "CITY_SAVES_DIR",
    directoryAtHome,
    `${CACHE}/saves`,
    "directory of saved cities",
  ),
  cityAutosaveSeconds: setting(
    "CITY_AUTOSAVE_SECONDS",
    amount(300, 0),
    "300",
    "interval of automatic city saves in seconds; 0 saves only when the city begins and when it is stopped",
  ),
  cityNew: setting(
    "CITY_NEW",
    switchedOn(false),
    "false",
    "begin a new city at start instead of going on with the latest save",
  ),
  cityUnlimitedMoney: setting(
    "CITY_UNLIMITED_MONEY",
    switchedOn(false),
    "false",
    "build in the embedded city whatever it costs; otherwise a command that the balance does not cover is refused",
  ),
  cityAllowedOrigins: setting(
    "CITY_ALLOWED_ORIGINS",
    list(",", ""),
    EMPTY,
    "web origins whose pages may command the city beside its own page, comma-separated; `*`: all. Empty: no other page commands, every page reads; otherwise the listed ones and those of this machine read; `none`: only those of this machine",
  ),
} as const satisfies Record<string, Setting>;

type Settings = typeof SETTINGS;
type Parsed = { readonly [K in keyof Settings]: z.output<Settings[K]["schema"]> };

type Derived =
  | "languageModelDevice"
  | "audioRoots"
  | "temporaryDirectory"
  | "trainingRoot"
  | "citySavesDirectory";

export type Config = Omit<Parsed, Derived> & {
  readonly languageModelDevice: string;
  readonly temporaryDirectory: string;
  readonly trainingRoot: string;
  readonly citySavesDirectory: string;
  /** Only programs of this machine reach the music service. */
  readonly isLocal: boolean;
  /** Null: audio paths may point anywhere. */
  readonly audioRoots: readonly string[] | null;
};
export type RangePolicy = Config["rangePolicy"];

/** A variable holds something that its rule forbids; the message names it. */
export class ConfigError extends Error {
  constructor(
    readonly variable: string,
    message: string,
  ) {
    super(message);
    this.name = "ConfigError";
  }
}

/**
 * Reads all settings. An unset or blank variable has its default; SVC_ALLOWED_ORIGINS=none means none.
 * @throws ConfigError naming the first variable that breaks its rule
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const values = Object.fromEntries(
    Object.entries(SETTINGS).map(([key, entry]) => [key, parseSetting(entry, environment)]),
  ) as Parsed;
  const { apiHost, audioRoots, devices, languageModelDevice, role } = values;
  if (role !== "all" && values.redisUrl === null) {
    throw new ConfigError(
      "SVC_ROLE",
      `SVC_ROLE is ${role}, which needs SVC_REDIS_URL: a fleet shares its tasks by Redis`,
    );
  }
  if (values.redisUrl !== null && values.storage === null) {
    throw new ConfigError(
      "SVC_STORAGE",
      "SVC_STORAGE is empty: the servers that share tasks by SVC_REDIS_URL share their songs too, by s3://BUCKET or file:///DIRECTORY",
    );
  }
  if (values.apiKeys.length > 0 && values.apiKey.trim() === "") {
    throw new ConfigError(
      "SVC_API_KEYS",
      "SVC_API_KEYS holds further keys: set SVC_API_KEY to the first one",
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

function parseSetting({ name, schema }: Setting, environment: NodeJS.ProcessEnv): unknown {
  const variable = variableInUse(name, environment);
  const value = environment[variable]?.trim();
  const result = schema.safeParse(value === "" ? undefined : value);
  if (result.success) return result.data;
  const reason = result.error.issues[0]?.message ?? "is not valid";
  throw new ConfigError(variable, `${variable} ${reason}, got "${value}"`);
}

/** Existing set-ups name the same settings ACESTEP_*. */
function variableInUse(name: string, environment: NodeJS.ProcessEnv): string {
  if (environment[name] !== undefined || !name.startsWith("SVC_")) return name;
  const alias = name.replace("SVC_", "ACESTEP_");
  return environment[alias] === undefined ? name : alias;
}

function startUpChoice(value: string): "auto" | "on" | "off" {
  if (value === "auto") return "auto";
  return isTrueWord(value) ? "on" : "off";
}

/** The table of SETTINGS.md, in Markdown. */
export function renderConfigTable(): string {
  const rows = Object.values(SETTINGS).map(
    ({ name, shownDefault, meaning }) => `| \`${name}\` | ${shownDefault} | ${meaning} |`,
  );
  return ["| Variable | Default | Meaning |", "|---|---|---|", ...rows].join("\n");
}
