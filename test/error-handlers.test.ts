import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";

const SOURCES = fileURLToPath(new URL("../src", import.meta.url));
/** Scripts of the page run in a browser. */
const PAGE = "web/";

/** What makes an emitter that ends the process when it has an error to tell and nobody to tell it to. */
const MAKERS = [
  ...["spawn", "fork", "execFile", "busboy", "createServer", "createConnection", "connect", "request"],
  ...["createWriteStream", "createReadStream", "createGunzip", "createInflate", "createBrotliDecompress"],
  ...["new Worker", "new Socket", "new WebSocket"],
];
const MAKING = new RegExp(`(?:(\\w+) = (?:await )?)?(?<![\\w#])(?:\\w+\\.)?(${MAKERS.join("|")})\\(`, "g");

/**
 * Whether somewhere in the text an error of `name` is waited for: by a listener, by a pipeline, by once, or by reading
 * all of a stream. A server takes connections, and may fail to, for as long as it listens: one listener once is not
 * enough.
 */
function isHandled(text: string, name: string, maker: string): boolean {
  const listener = `${name}\\s*\\.on\\("error"`;
  const waits = [
    `${name}\\s*\\.once\\("error"`,
    `pipeline\\([^)]*${name}`,
    `once\\(${name}`,
    `await \\(.* of ${name}\\)`,
  ];
  const ways = maker === "createServer" ? [listener] : [listener, ...waits];
  return new RegExp(ways.join("|")).test(text);
}

/** Emitters that nothing in the text listens to, as `maker name`. One that has no name may be any of the listened to. */
function unhandled(text: string): string[] {
  const code = text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|^import .*$/gm, "");
  return [...code.matchAll(MAKING)]
    .filter(
      ([, name, maker]) => !isHandled(code, name === undefined ? "\\w+" : `#?\\b${name}\\b`, maker as string),
    )
    .map(([, name, maker]) => `${maker} ${name ?? "(unnamed)"}`);
}

describe("emitters", () => {
  it("have an error handler, wherever the sources make one", () => {
    const files = (readdirSync(SOURCES, { recursive: true }) as string[]).filter(
      (file) => /\.[jt]s$/.test(file) && !file.startsWith(PAGE),
    );
    expect(files).to.include.members([
      "http/listener.ts",
      "music/audio/ffmpeg.ts",
      "engine/tokenizer-thread.ts",
    ]);
    const found = files.flatMap((file) =>
      unhandled(readFileSync(join(SOURCES, file), "utf8")).map((emitter) => `${file}: ${emitter}`),
    );
    expect(found).to.deep.equal([]);
  });

  const samples: [code: string, found: string[]][] = [
    ['const child = spawn("ffmpeg");\nchild.on("close", end);', ["spawn child"]],
    ['const child = spawn("ffmpeg");\nchild.on("error", end);', []],
    ['const a = spawn("x");\nconst b = spawn("y");\na.once("error", end);', ["spawn b"]],
    ['return spawn("ffmpeg");', ["spawn (unnamed)"]],
    ["const file = fs.createWriteStream(path);\ninput.pipe(file);", ["createWriteStream file"]],
    ["const file = createWriteStream(path);\nawait pipeline(input, file);", []],
    ["const file = createReadStream(path);\nfor await (const chunk of file) take(chunk);", []],
    ['const server = createServer(app);\nserver.once("error", reject);', ["createServer server"]],
    ['const server = createServer(app);\nserver.on("error", log);', []],
    ['this.#worker = new Worker(url);\nthis.#worker.on("error", fail);', []],
    ["this.#worker = new Worker(url);", ["new Worker worker"]],
    ['const request = httpRequest(url);\n// spawn("x")', []],
  ];
  for (const [code, found] of samples) {
    it(`are told apart in ${JSON.stringify(code)}`, () => expect(unhandled(code)).to.deep.equal(found));
  }
});
