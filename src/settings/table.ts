/** Name, default and rule of every setting, in the order of src/SETTINGS.md, which is generated from this table. */
import { delimiter, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { DEFAULT_LANGUAGE_MODEL, DEFAULT_MODEL } from "../engine/checkpoints.js";
import {
  autoOnOrOff,
  countOrAuto,
  device,
  devices,
  directory,
  directoryInHome,
  flag,
  hostList,
  integer,
  megabytes,
  minutesOrAuto,
  nameList,
  numberFrom,
  oneOf,
  optionalText,
  originRule,
  SECONDS_PER_HOUR,
  separatedList,
  text,
} from "./types.js";

export interface Setting<S extends z.ZodType = z.ZodType> {
  name: string;
  /** Value, as text, that is used if the variable is unset or blank. */
  fallback: string;
  schema: S;
  meaning: string;
  /** Default as written in src/SETTINGS.md. */
  shownDefault: string;
}

function setting<S extends z.ZodType>(
  assignment: `${string}=${string}`,
  schema: S,
  meaning: string,
  shown?: string,
): Setting<S> {
  const [name = "", fallback = ""] = assignment.split("=");
  return { name, fallback, schema, meaning, shownDefault: shown ?? (fallback || "empty") };
}

const CACHE = ".cache/carillon";

/** All settings, by the name of their property in `Config`. */
export const SETTINGS = {
  apiHost: setting(
    "SVC_API_HOST=127.0.0.1",
    text.transform((host) => host.replace(/^\[(.*)\]$/, "$1")),
    "bind host of the music service",
  ),
  apiPort: setting("SVC_API_PORT=8001", integer(0, 65535), "bind port; 0: any free port"),
  apiKey: setting("SVC_API_KEY=", text, "API key; empty disables authentication"),
  apiKeys: setting(
    "SVC_API_KEYS=",
    separatedList(","),
    "further keys beside SVC_API_KEY, comma-separated. The waiting tasks of different keys take turns. Everything else is shared: each key can read, change and delete all tasks, songs and adapters",
  ),
  redisUrl: setting(
    "SVC_REDIS_URL=",
    z
      .string()
      .regex(/^rediss?:\/\/\S+$/, "must be a URL such as redis://:password@host:6379/0, rediss:// with TLS")
      .nullable()
      .default(null),
    "Redis or Valkey URL through which a fleet shares tasks, including the password; rediss:// for TLS. Empty: this server works alone",
  ),
  storage: setting(
    "SVC_STORAGE=",
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
    "storage of a fleet's songs, uploads and adapters: `s3://bucket/prefix`, configured by the AWS SDK's variables (`AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL_S3`), or `file:///directory`, mounted at the same path on every server. Empty: SVC_TMPDIR. Required with SVC_REDIS_URL",
  ),
  storageUrls: setting(
    "SVC_STORAGE_URLS=proxy",
    oneOf(["proxy", "signed"]),
    "how clients download songs from S3: proxy (through this server) or signed (redirect to a presigned URL, valid for an hour)",
  ),
  role: setting(
    "SVC_ROLE=all",
    oneOf(["all", "gateway", "worker"]),
    "role in a fleet: all, gateway (answers clients, loads no models) or worker (makes songs; serves only `/health` and `/metrics`). gateway and worker need SVC_REDIS_URL",
  ),
  healthRequiresKey: setting(
    "SVC_HEALTH_REQUIRES_KEY=false",
    flag,
    "whether `/health` requires the key; a wrong key is always rejected",
  ),
  allowedOrigins: setting(
    "SVC_ALLOWED_ORIGINS=none",
    nameList.pipe(z.array(originRule)),
    "web origins, beside this machine's, whose pages may call the service, comma-separated, such as `http://192.168.1.5:3000`; `null`: pages opened from files and sandboxed frames; `*`: all; `none`: no others",
  ),
  allowedHosts: setting(
    "SVC_ALLOWED_HOSTS=none",
    hostList,
    "host names, beside this machine's, that requests may use, comma-separated: `host.docker.internal`, or the name that a reverse proxy passes on; `*`: all. Checked only if SVC_API_HOST is a loopback address and SVC_API_KEY is empty",
  ),
  callbackHosts: setting(
    "SVC_CALLBACK_HOSTS=none",
    nameList.pipe(
      z.array(
        z
          .string()
          .regex(/^[^\s/@?#]+$/, "must list hosts such as 127.0.0.1:9000")
          .toLowerCase(),
      ),
    ),
    "private hosts that `callback_url` may use, comma-separated, as in the URL: `127.0.0.1:9000` for one port, `hooks.internal` for any port",
  ),
  allowsNoKey: setting(
    "SVC_ALLOW_NO_KEY=false",
    flag,
    "start without a key although SVC_API_HOST is not a loopback address: anyone who can reach it can use the service",
  ),
  slot1Model: setting(
    `SVC_CONFIG_PATH=${DEFAULT_MODEL}`,
    text,
    "primary DiT model: a name in SVC_CHECKPOINTS or a path; the built-in model if the default is not installed",
  ),
  slot2Model: setting("SVC_CONFIG_PATH2=", optionalText, "second DiT model; enables slot 2"),
  slot3Model: setting("SVC_CONFIG_PATH3=", optionalText, "third DiT model; enables slot 3"),
  checkpointsDirectory: setting(
    `SVC_CHECKPOINTS=${CACHE}/checkpoints`,
    directory,
    "checkpoint directory: a folder or .safetensors file per model",
  ),
  hubUrl: setting(
    "HF_ENDPOINT=https://huggingface.co",
    text,
    "Hugging Face, or a mirror, to pull models from",
  ),
  hubToken: setting("HF_TOKEN=", optionalText, "Hugging Face token, for private and gated repositories"),
  devices: setting(
    "SVC_DEVICE=auto",
    devices,
    "device of the models: auto, cpu, cuda or cuda:N; a comma-separated list sets slots 1, 2 and 3 (GPUs render in parallel; see SVC_QUEUE_WORKERS). auto: the GPU with the most free memory, a different one per model while available",
  ),
  useFlashAttention: setting("SVC_USE_FLASH_ATTENTION=true", flag, "use flash attention"),
  quantization: setting(
    "SVC_QUANTIZATION=none",
    oneOf(["none", "int8", "int4"]),
    "weight quantization of DiT, text encoder and language model to 8 or 4 bits: less memory, slightly less exact. none: as in the files, including the quantization of a .gguf file",
  ),
  offloadToCpu: setting(
    "SVC_OFFLOAD_TO_CPU=false",
    flag,
    "keep idle models in main memory instead of on the device",
  ),
  offloadDitToCpu: setting(
    "SVC_OFFLOAD_DIT_TO_CPU=false",
    flag,
    "keep the idle DiT in main memory instead of on the device",
  ),
  batchMax: setting(
    "SVC_BATCH_MAX=auto",
    countOrAuto,
    "maximum songs in a batch of planning or rendering; reduced when memory runs out. auto: no limit, but the CPU renders songs one by one, so that the first is ready sooner",
  ),
  deterministic: setting(
    "SVC_DETERMINISTIC=false",
    flag,
    "make each song alone on a GPU, whatever SVC_BATCH_MAX is: its bytes then do not depend on the songs that are made with it. Slower for several songs. No effect on the CPU, where bytes never depend on other songs",
  ),
  modelIdleSeconds: setting(
    "SVC_MODEL_IDLE_MINUTES=auto",
    minutesOrAuto,
    "minutes after which an idle model is unloaded; it reloads on demand. 0: never. auto: 10 on a GPU with less than 32 GiB, which is usually shared with a desktop, otherwise 0. Models with loaded adapters stay",
  ),
  initLanguageModel: setting(
    "SVC_INIT_LLM=auto",
    autoOnOrOff,
    "load the language model at start and let it fill in what a request leaves unset: auto (depends on the device), true, or false (loaded only when a request needs it)",
  ),
  languageModel: setting(
    `SVC_LM_MODEL_PATH=${DEFAULT_LANGUAGE_MODEL}`,
    text,
    "default 5Hz language model: a name in SVC_CHECKPOINTS or a path",
  ),
  languageModelDevice: setting(
    "SVC_LM_DEVICE=",
    device.nullable().default(null),
    "device of the language model; default: the device of slot 1",
    "SVC_DEVICE",
  ),
  offloadLanguageModelToCpu: setting(
    "SVC_LM_OFFLOAD_TO_CPU=false",
    flag,
    "keep the idle language model in main memory instead of on the device",
  ),
  queueMaxSize: setting(
    "SVC_QUEUE_MAXSIZE=200",
    integer(0),
    "maximum number of waiting tasks; 0: no limit; a full queue answers 429",
  ),
  queueWorkers: setting(
    "SVC_QUEUE_WORKERS=1",
    integer(1),
    "number of queue workers: tasks whose songs are made at once; one more of each may encode and store its songs. Their songs are planned in one batch, with those of waiting tasks",
  ),
  averageJobSeconds: setting(
    "SVC_AVG_JOB_SECONDS=5.0",
    numberFrom(0),
    "initial estimate of a job's duration, in seconds",
  ),
  averageWindow: setting("SVC_AVG_WINDOW=50", integer(1), "number of jobs in the average duration"),
  jobTimeoutSeconds: setting(
    "SVC_JOB_TIMEOUT_SECONDS=3600",
    numberFrom(0),
    "time limit of a job; 0: no limit",
  ),
  graceSeconds: setting(
    "SVC_GRACE_SECONDS=4",
    numberFrom(0),
    "time for running tasks to finish when the server is stopped; unfinished ones return to the queue. Stop timeouts of service managers must be at least 3 seconds longer",
  ),
  logLevel: setting(
    "SVC_LOG_LEVEL=info",
    oneOf(["silent", "error", "warn", "info", "debug"]),
    "log level on stderr: silent, error, warn, info or debug",
  ),
  rangePolicy: setting(
    "SVC_RANGE_POLICY=clamp",
    oneOf(["refuse", "clamp"]),
    "out-of-range numbers: clamp them and add a line to `warnings`, as clients of other servers expect, or reject them (status 400)",
  ),
  homeDirectory: setting(
    `SVC_HOME=${CACHE}`,
    directory,
    "data directory of one server: the default parent of SVC_TMPDIR, SVC_TRAINING_ROOT and CITY_SAVES_DIR. A second server on the machine needs its own; checkpoints can be shared",
  ),
  temporaryDirectory: setting(
    "SVC_TMPDIR=",
    directoryInHome,
    "directory of generated audio, uploads and the task store",
    `${CACHE}/tmp`,
  ),
  umask: setting(
    "SVC_UMASK=077",
    z
      .string()
      .regex(/^0?[0-7]{3}$/, "must be three octal digits, such as 077")
      .transform((digits) => Number.parseInt(digits, 8)),
    "umask of new files and folders: 077 keeps songs, uploads, tasks and saved cities to the server's own user (0600, 0700), 027 lets its group read them, 007 lets servers of one group share a directory of SVC_STORAGE under different users",
  ),
  audioRoots: setting(
    "SVC_AUDIO_ROOTS=",
    separatedList(delimiter).transform((roots) => roots.map((root) => resolve(root))),
    `directories that audio paths in requests may be in, separated by \`${delimiter}\`; empty: any if SVC_API_HOST is a loopback address, otherwise none`,
  ),
  trainingRoot: setting(
    "SVC_TRAINING_ROOT=",
    directoryInHome,
    "directory that all paths of training requests must be in (songs, tensors, outputs, exports, data sets); relative paths start there. Adapters may be loaded from there, and from any absolute path if SVC_API_HOST is a loopback address. Created at start",
    `${CACHE}/training`,
  ),
  adaptersDirectory: setting(
    "SVC_ADAPTERS=",
    directory.nullable().default(null),
    "further directory of adapters, which requests of acestep.cpp's clients name; empty: only SVC_TRAINING_ROOT",
  ),
  audioMaxAgeSeconds: setting(
    "SVC_AUDIO_MAX_AGE_HOURS=0",
    numberFrom(0).transform((hours) => hours * SECONDS_PER_HOUR),
    "finished tasks and their songs are deleted after this time, except favourites; 0: never",
  ),
  audioMaxTotalBytes: setting(
    "SVC_AUDIO_MAX_TOTAL_MB=10240",
    megabytes,
    "maximum total size of songs and uploaded recordings; the oldest are deleted first, except favourites; 0: no limit",
  ),
  writesTags: setting(
    "SVC_AUDIO_TAGS=true",
    flag,
    "write title, prompt, lyrics, tempo, key and seed into song files (wav: title and prompt)",
  ),
  bodyMaxBytes: setting("SVC_BODY_MAX_MB=1", megabytes, "maximum request body, not counting uploaded files"),
  sourceMaxSeconds: setting(
    "SVC_SOURCE_MAX_SECONDS=600",
    numberFrom(1),
    "maximum length of source and reference audio, uploaded or given as a path",
  ),
  uploadMaxBytes: setting("SVC_UPLOAD_MAX_MB=256", megabytes, "maximum size of an uploaded file"),
  uploadMaxFiles: setting("SVC_UPLOAD_MAX_FILES=4", integer(0), "maximum number of files in a request"),
  libtorch: setting("LIBTORCH=", optionalText, "libtorch directory for set-up, instead of searching for one"),
  cityPort: setting("CITY_BRIDGE_PORT=32123", integer(0, 65535), "port of the city bridge"),
  cityGameUrl: setting(
    "CITY_GAME_URL=",
    z.url("must be a URL such as http://127.0.0.1:32124").nullable().default(null),
    "bridge of a running game to forward to; empty: the embedded city",
  ),
  citySavesDirectory: setting(
    "CITY_SAVES_DIR=",
    directoryInHome,
    "directory of city saves",
    `${CACHE}/saves`,
  ),
  cityAutosaveSeconds: setting(
    "CITY_AUTOSAVE_SECONDS=300",
    numberFrom(0),
    "autosave interval in seconds; 0: save only when a city starts and when it stops",
  ),
  cityNew: setting("CITY_NEW=false", flag, "start a new city instead of loading the latest save"),
  cityUnlimitedMoney: setting(
    "CITY_UNLIMITED_MONEY=false",
    flag,
    "unlimited money in the embedded city; otherwise commands that cost more than the balance are rejected",
  ),
  cityAllowedOrigins: setting(
    "CITY_ALLOWED_ORIGINS=",
    separatedList(",").pipe(z.array(z.literal("none").or(originRule))),
    "web origins, beside the city's own page, whose pages may send commands to the city, comma-separated; `*`: all. Pages that may read the city: with an empty list all, otherwise the listed ones and this machine's; `none`: only this machine's",
  ),
} as const satisfies Record<string, Setting>;
