import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { type Client, longSong, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

const sockets: Server[] = [];
const symlinkTo =
  (kind: (path: string) => void) =>
  (path: string): void => {
    kind(`${path}.target`);
    symlinkSync(`${path}.target`, path);
  };
const fifo = (path: string) => void execFileSync("mkfifo", [path]);
const socket = (path: string) => void sockets.push(createServer().listen(path));

/** For each kind of unreadable file, a function that creates it at a path. */
const KINDS: Readonly<Record<string, (path: string) => void>> = {
  "a FIFO": fifo,
  "a socket": socket,
  "a link to a FIFO": symlinkTo(fifo),
  "a link to a socket": symlinkTo(socket),
  "a link to an endless device": (path) => symlinkSync("/dev/zero", path),
  "a link to the kernel's log": (path) => symlinkSync("/proc/kmsg", path),
  "a link to a file of /proc": (path) => symlinkSync("/proc/self/status", path),
  "a link to a file of /sys": (path) => symlinkSync("/sys/kernel/mm/transparent_hugepage/enabled", path),
  "a loop of links": (path) => symlinkSync(path, path),
  "a directory": (path) => mkdirSync(path),
  "a link to a directory": symlinkTo((path) => mkdirSync(path)),
  "an empty file": (path) => writeFileSync(path, ""),
  "a sparse file of a terabyte": (path) => {
    writeFileSync(path, "");
    truncateSync(path, 2 ** 40);
  },
};

interface Endpoint {
  /** Names of files that the endpoint reads. The test makes all of them unreadable in the same way. */
  files: readonly string[];
  /** Sends a request that names the folder, or the first of `files`. */
  ask: (client: Client, folder: string, file: string) => ReturnType<Client["post"]>;
  /** Other files in the same folder, all valid: contents by name. */
  beside?: Readonly<Record<string, string>>;
  /** Range of expected HTTP statuses; by default the request must be rejected. */
  statuses?: readonly [from: number, to: number];
}

const cover = { ...shortSong, task_type: "cover" };
const TEXTS = {
  "a.caption.txt": "words",
  "a.lyrics.txt": "words",
  "a.json": "{}",
  "all.csv": "File,Caption\n",
};
const wav = execFileSync("ffmpeg", ["-loglevel", "error", "-f", "lavfi", "-i", "sine=d=1", "-f", "wav", "-"]);

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  "a source": {
    files: ["song.wav"],
    ask: (client, _, file) => client.post("/release_task", { ...cover, src_audio_path: file }),
  },
  "a reference": {
    files: ["song.wav"],
    ask: (client, _, file) => client.post("/release_task", { ...shortSong, reference_audio_path: file }),
  },
  "a song to download": {
    files: ["song.wav"],
    ask: (client, _, file) => client.get(`/v1/audio?path=${encodeURIComponent(file)}`),
  },
  "an adapter's file": {
    files: ["adapter.safetensors"],
    ask: (client, _, file) => client.post("/v1/lora/load", { lora_path: file }),
  },
  "an adapter's configuration": {
    files: ["adapter_config.json"],
    beside: { "adapter.safetensors": "" },
    ask: (client, folder) => client.post("/v1/lora/load", { lora_path: join(folder, "adapter.safetensors") }),
  },
  "an adapter's folder": {
    files: ["adapter_config.json", "adapter_model.safetensors"],
    ask: (client, folder) => client.post("/v1/lora/load", { lora_path: folder }),
  },
  "a folder of adapters": {
    files: ["one.safetensors", "two.safetensors"],
    ask: (client, folder) => client.post("/v1/lora/load", { lora_path: folder }),
  },
  "a model's folder": {
    files: ["config.json", "model.safetensors", "silence_latent.pt", "tokenizer/tokenizer.json"],
    ask: (client, folder) => client.post("/v1/init", { slot: 1, model: folder }),
  },
  "a language model's folder": {
    files: ["config.json", "model.safetensors", "tokenizer.json"],
    ask: (client, folder) => client.post("/v1/init", { init_llm: true, lm_model_path: folder }),
  },
  "a data set": {
    files: ["set.json"],
    ask: (client, _, file) => client.post("/v1/dataset/load", { dataset_path: file }),
  },
  "a data set to save": {
    files: ["set.json"],
    ask: (client, _, file) => client.post("/v1/dataset/save", { save_path: file, dataset_name: "mine" }),
  },
  "a folder of recordings": {
    files: ["a.wav", "b.flac"],
    ask: (client, folder) => client.post("/v1/dataset/scan", { audio_dir: folder }),
  },
  "sidecar files": {
    files: Object.keys(TEXTS),
    beside: { "a.wav": "" },
    statuses: [200, 200],
    ask: (client, folder) => client.post("/v1/dataset/scan", { audio_dir: folder }),
  },
  "a manifest of samples": {
    files: ["manifest.json"],
    ask: (client, folder) => client.post("/v1/training/load_tensor_info", { tensor_dir: folder }),
  },
  "samples to train on": {
    files: ["a.pt", "b.safetensors"],
    ask: (client, folder) =>
      client.post("/v1/training/start", { tensor_dir: folder, lora_output_dir: join(folder, "out") }),
  },
  "an adapter to export": {
    files: ["final/adapter/adapter_config.json", "final/adapter/adapter_model.safetensors"],
    // The export copies files without parsing them, so exporting a folder or an empty file succeeds.
    statuses: [200, 500],
    ask: (client, folder) =>
      client.post("/v1/training/export", { lora_output_dir: folder, export_path: join(folder, "mine") }),
  },
  "an adapter to export for others": {
    files: ["final/adapter/adapter_config.json", "final/adapter/adapter_model.safetensors"],
    ask: (client, folder) =>
      client.post("/v1/training/export", {
        lora_output_dir: folder,
        export_path: join(folder, "mine"),
        fold_alpha: true,
      }),
  },
};

describe("unreadable paths in requests", () => {
  let root: string;
  let server: ServedProcess;

  before(async () => {
    root = realpathSync(temporaryDirectory());
    const settings = { SVC_TRAINING_ROOT: root };
    server = await ServedProcess.start(temporaryDirectory(), settings);
  });

  after(async () => {
    for (const each of sockets) each.close();
    await endServed();
  });

  for (const [what, { files, beside = {}, ask, statuses = [400, 500] }] of Object.entries(ENDPOINTS)) {
    it(`the server is not blocked if ${what} is not a readable file`, async () => {
      // More concurrent requests than the server has threads that could block.
      const answers = await Promise.all(
        Object.entries(KINDS).map(async ([kind, make]) => {
          const folder = mkdtempSync(join(root, "folder-"));
          for (const [name, text] of Object.entries(beside)) {
            writeFileSync(join(folder, name), name.endsWith(".wav") ? wav : text);
          }
          for (const name of files) {
            mkdirSync(dirname(join(folder, name)), { recursive: true });
            make(join(folder, name));
          }
          const { status, body } = await ask(server.client, folder, join(folder, files[0] as string));
          return { kind, status, detail: String(body.detail ?? body.data?.message) };
        }),
      );
      const [from, to] = statuses;
      for (const { kind, status, detail } of answers) {
        const outcome = `${kind}: ${status} ${detail}`;
        expect(detail, outcome).to.not.match(/^(undefined|Internal server error)$/);
        expect(status, outcome).to.be.within(from, to);
      }
      expect((await server.client.get("/health")).status).to.equal(200);
    });
  }

  it("after requests with unreadable files, the server can make songs, cancel one, and stop", async () => {
    const { client } = server;
    const id = await client.submit(longSong);
    await client.untilStarted(id);
    expect((await client.post("/cancel_task", { task_id: id })).status).to.equal(200);
    expect((await client.finished(await client.submit(shortSong))).item.status).to.equal(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
