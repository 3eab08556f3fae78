/** Installs libtorch for CUDA without pip, from wheels on a local server. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { expect } from "chai";
import { downloadLibtorch } from "../../src/libtorch/cuda-install.js";
import { CUDA_WHEELS, type Wheels } from "../../src/libtorch/cuda-wheels.js";
import { PullError } from "../../src/models/errors.js";
import { failureOf } from "../failures.js";
import { listenLocally } from "../local-server.js";
import { temporaryDirectory } from "../music/tasks.js";

const FILES = {
  "torch.whl": {
    "torch/lib/libtorch_cpu.so": "a library",
    "torch/include/ATen/ATen.h": "",
    "torch/version.py": "__version__ = '2.14.1'",
    "torch/nn/functional.py": "of no use here",
    "torch-2.14.1.dist-info/licenses/LICENSE": "BSD",
  },
  "nvidia_cublas.whl": { "nvidia/cu13/lib/libcublas.so.13": "x".repeat(50_000) },
};

describe("installing libtorch for CUDA without pip", () => {
  const directory = temporaryDirectory();
  const wheels = join(directory, "wheels");
  let server: Server;
  let list: Wheels;
  /** Changes the content of a wheel before the server sends it. */
  let damage: (content: Buffer) => Buffer = (content) => content;
  let asked: string[] = [];

  before(async () => {
    mkdirSync(wheels);
    for (const [name, files] of Object.entries(FILES)) writeWheel(join(wheels, name), files);
    server = createServer(({ url = "", headers: { range } }, response) => {
      asked.push(`${url} ${range ?? "whole"}`);
      const file = join(wheels, url.slice(1));
      if (!existsSync(file)) return response.writeHead(404).end();
      const content = readFileSync(file);
      const from = Number(/bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0);
      response.writeHead(range === undefined ? 200 : 206, { "content-length": content.length - from });
      const sent = damage(content).subarray(from);
      response.write(sent, () => (sent.length < content.length - from ? response.destroy() : response.end()));
    });
    const { url: host } = await listenLocally(server);
    list = { ...CUDA_WHEELS, host, wheels: Object.keys(FILES).map((name) => listed(name)) };
  });

  after(() => server.close());

  beforeEach(() => {
    damage = (content) => content;
    asked = [];
  });

  function listed(name: string) {
    const content = readFileSync(join(wheels, name));
    const sha256 = createHash("sha256").update(content).digest("hex");
    return { path: name, bytes: content.length, sha256 };
  }

  const install = (target: string, change: Partial<Wheels> = {}) =>
    downloadLibtorch({ ...list, ...change }, target, AbortSignal.timeout(60_000), () => {});

  async function refusal(attempt: Promise<void>, code: string) {
    const error = await failureOf(attempt);
    expect(error).to.be.instanceOf(PullError).and.include({ code });
    expect(error.message.split("\n")).to.have.length(1);
    return error.message;
  }

  it("unpacks libraries, headers and licences of all wheels, after checking their checksums", async () => {
    const target = join(directory, "whole");
    await install(target);
    const found = readdirSync(target, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const kept = found.map((entry) => join(entry.parentPath.slice(target.length + 1), entry.name));
    expect(kept).to.include.members([
      "torch/lib/libtorch_cpu.so",
      "torch/include/ATen/ATen.h",
      "torch/version.py",
      "nvidia/cu13/lib/libcublas.so.13",
    ]);
    expect(kept.join()).to.contain("LICENSE").and.not.contain("functional.py").and.not.contain(".part");
    expect(readFileSync(join(target, "torch/lib/libtorch_cpu.so"), "utf8")).to.equal("a library");
  });

  it("resumes a broken download, and creates the target folder only after the complete download", async () => {
    const target = join(directory, "truncated");
    damage = (content) => content.subarray(0, content.length - 100);
    const said = await refusal(install(target), "CONNECTION_LOST");
    expect(said).to.match(
      /failed after \d+ of \d+ bytes of torch\.whl.*run the same command again to resume/,
    );
    expect(existsSync(target)).to.equal(false);
    damage = (content) => content;
    asked = [];
    await install(target);
    expect(asked[0]).to.match(/^\/torch\.whl bytes=\d+-$/);
    expect(existsSync(join(target, "nvidia/cu13/lib/libcublas.so.13"))).to.equal(true);
  });

  it("rejects a wheel with a wrong checksum, and downloads it again on the next attempt", async () => {
    const target = join(directory, "tampered");
    damage = (content) => (content.length > 1000 ? Buffer.from(content).fill(1, 500, 600) : content);
    expect(await refusal(install(target), "CHECKSUM")).to.match(/sha256 is \w{64}, not \w{64}/);
    expect(existsSync(target)).to.equal(false);
    damage = (content) => content;
    await install(target);
    expect(existsSync(join(target, "torch/lib/libtorch_cpu.so"))).to.equal(true);
  });

  it("reports an unreachable server with a hint about mirrors, and a missing wheel with the HTTP status", async () => {
    const target = join(directory, "offline");
    const offline = await refusal(install(target, { host: "http://127.0.0.1:1" }), "UNREACHABLE");
    expect(offline).to.match(/cannot be reached .*CARILLON_WHEELS sets a mirror/);
    const wheel = { path: "absent.whl", bytes: 1, sha256: "" };
    expect(await refusal(install(target, { wheels: [wheel] }), "HUB")).to.contain("with status 404");
  });

  it("reports the space needed when the disk is too small", async () => {
    const wheel = { path: "large.whl", bytes: 1e18, sha256: "" };
    const said = await refusal(install(join(directory, "full"), { wheels: [wheel] }), "DISK_FULL");
    expect(said).to.match(/needs 2700000000\.0 GB of free space .*CARILLON_CACHE/);
    expect(asked).to.deep.equal([]);
  });

  it("CUDA_WHEELS has the path, size and checksum of every wheel", () => {
    for (const { path, bytes, sha256 } of CUDA_WHEELS.wheels) {
      expect(path).to.match(/^[0-9a-f]{2}\/[0-9a-f]{2}\/[0-9a-f]{60}\/\w[\w.-]*\.whl$/);
      expect(sha256).to.match(/^[0-9a-f]{64}$/);
      expect(bytes).to.be.above(0);
    }
    expect(CUDA_WHEELS.wheels[0]?.path).to.contain(`torch-${CUDA_WHEELS.version}-`);
  });
});

function writeWheel(path: string, files: Record<string, string>) {
  const program = `import sys, json, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, text in json.loads(sys.argv[2]).items():
        wheel.writestr(name, text, zipfile.ZIP_DEFLATED if name.startswith("torch") else zipfile.ZIP_STORED)`;
  const { status, stderr } = spawnSync("python3", ["-c", program, path, JSON.stringify(files)], {
    encoding: "utf8",
  });
  expect(status, stderr).to.equal(0);
}
