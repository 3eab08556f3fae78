/** The packages of the registry as applications get them, on a machine without Python, CMake and compiler. */
import { type SpawnSyncReturns, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { temporaryDirectory } from "./music/tasks.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const stage = join(root, "release/stage");
const platform = `${process.platform}-${process.arch}`;
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/** The version that set-up installs. */
const PINNED = "2.13.0";

/** Loads the addon and tells which libtorch is in the process. */
const LOAD = `require("carillon/native").loadAddon(console.log);
  const maps = require("fs").readFileSync("/proc/self/maps", "utf8");
  console.log(new Set(maps.match(/\\/.*libtorch_cpu\\.so$/gm)))`;

describe("packages", () => {
  const directory = temporaryDirectory();
  const programs = join(directory, "bin");
  const application = join(directory, "an application");
  const installed = join(application, "node_modules/carillon");
  const prebuilt = join(application, `node_modules/@carillon/${platform}`);

  /** Runs a program that knows no more of the machine than a bare one has. */
  function run(args: readonly string[], settings: Record<string, string> = {}, cwd = application) {
    const { HOME = "", npm_config_cache = "" } = process.env;
    const cache = npm_config_cache === "" ? {} : { npm_config_cache };
    return spawnSync(process.execPath, args, {
      cwd,
      encoding: "utf8",
      env: { HOME, ...cache, PATH: programs, SVC_DEVICE: "cpu", ...settings },
    });
  }

  function npm(...args: string[]): SpawnSyncReturns<string> {
    const program = join(dirname(realpathSync(process.execPath)), "../lib/node_modules/npm/bin/npm-cli.js");
    return run([program, ...args, "--no-audit", "--no-fund"]);
  }

  const carillon = (...args: string[]) => run([join(installed, "dist/cli.js"), ...args]);

  /** A libtorch of the user's own: the package's, somewhere else. */
  function layLibtorch(at: string, libtorch: string) {
    mkdirSync(join(at, "include/ATen"), { recursive: true });
    mkdirSync(join(at, "lib"));
    writeFileSync(join(at, "include/ATen/ATen.h"), "");
    writeFileSync(join(at, "build-version"), libtorch);
    for (const name of readdirSync(prebuilt).filter((file) => file.includes(".so")))
      linkSync(join(prebuilt, name), join(at, "lib", name));
  }

  /** Runs a test while a file of the installed packages is another one. */
  function replaced(path: string, by: (path: string) => void, test: () => void) {
    renameSync(path, `${path}.whole`);
    try {
      by(path);
      test();
    } finally {
      renameSync(`${path}.whole`, path);
    }
  }

  before(function () {
    this.timeout(600_000);
    const staged = spawnSync(process.execPath, [join(root, "scripts/release.mjs"), "--stage"], {
      encoding: "utf8",
    });
    if (/is for CUDA/.test(staged.stderr)) this.skip();
    expect(staged.status, staged.stderr).to.equal(0);
    mkdirSync(programs);
    for (const name of ["node", "sh", "ffmpeg", "ffprobe"]) {
      const found = (process.env.PATH ?? "")
        .split(delimiter)
        .find((folder) => existsSync(join(folder, name)));
      if (found !== undefined) symlinkSync(join(found, name), join(programs, name));
    }
    mkdirSync(application);
    for (const example of ["embed.mjs", "embed.cjs"])
      cpSync(join(root, "examples", example), join(application, example));
    writeFileSync(join(application, "package.json"), JSON.stringify({ name: "application", private: true }));
    // Not compressed, which would take most of the test.
    const tarballs = ["carillon", platform].map((name) => {
      const file = join(directory, `${name}.tgz`);
      const made = spawnSync("tar", ["-cf", file, "-C", stage, `--transform=s,^${name},package,`, name]);
      expect(made.status, String(made.stderr)).to.equal(0);
      return file;
    });
    const install = npm("install", "--ignore-scripts", ...tarballs);
    expect(install.status, install.stderr).to.equal(0);
  });

  it("hold what runs, in one version, and ask for no newer system than they say", () => {
    const read = (path: string) => JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
    const [ours, native] = [read(installed), read(prebuilt)];
    expect(ours.optionalDependencies).to.deep.equal({ [`@carillon/${platform}`]: version });
    expect(ours).to.not.have.property("devDependencies");
    expect(ours.scripts).to.have.all.keys("setup");
    expect(native).to.deep.include({ version, os: [process.platform], cpu: [process.arch] });
    const files = readdirSync(installed, { recursive: true, encoding: "utf8" });
    expect(files.filter((name) => name.endsWith(".map"))).to.deep.equal([]);
    for (const name of files.filter((name) => /^dist.*\.js$/.test(name)))
      expect(readFileSync(join(installed, name), "utf8"), name).to.not.contain("sourceMappingURL");
    const binaries = readdirSync(prebuilt).filter((name) => /\.(so|node)/.test(name));
    expect(binaries).to.include.members(["carillon.node", "libtorch_cpu.so"]);
    for (const name of binaries) {
      const { stdout } = spawnSync("readelf", ["-dW", join(prebuilt, name)], { encoding: "utf8" });
      expect(stdout, name)
        .to.contain("SONAME")
        .and.to.not.match(/R(UN)?PATH.*\[(?!\$ORIGIN\])/);
    }
  });

  it("make a song from an ES module and from CommonJS, also without vector instructions, and leave themselves as they are", () => {
    const before = readdirSync(join(application, "node_modules"), { recursive: true }).length;
    const oldest = {
      CARILLON_CPU_KERNELS: "none",
      ATEN_CPU_CAPABILITY: "default",
      ONEDNN_MAX_CPU_ISA: "SSE41",
    };
    for (const [example, settings] of [
      ["embed.mjs", {}],
      ["embed.cjs", oldest],
    ] as const) {
      const { stdout, stderr } = run([example, "a slow waltz", `${example}.wav`], settings);
      expect(stdout, stderr).to.match(/seed \d+, \d+ bpm/);
      expect(statSync(join(application, `${example}.wav`)).size).to.be.above(1_000_000);
    }
    expect(readdirSync(join(application, "node_modules"), { recursive: true })).to.have.length(before);
  });

  it("serve the command line", () => {
    expect(carillon("--version").stdout.trim()).to.equal(version);
    const song = carillon("generate", "a slow waltz", "--duration", "10", "--out", "cli.wav");
    expect(song.status, song.stderr).to.equal(0);
    expect(statSync(join(application, "cli.wav")).size).to.be.above(1_000_000);
  });

  it("offer the native addon alone", () => {
    const program = 'console.log(require("carillon/native").loadAddon().runtimeInfo().libtorchVersion)';
    expect(run(["-e", program]).stdout).to.match(/^2\.\d+/);
  });

  it("are typed, down to what they depend on", function () {
    this.timeout(120_000);
    writeFileSync(
      join(application, "typed.mts"),
      `import { createEngine, createMusicServer, loadConfig, type MusicServer } from "carillon";
       import { loadAddon, type NativeAddon } from "carillon/native";
       const config = loadConfig({});
       export const server: Promise<MusicServer> = createMusicServer({ config, engine: createEngine(config) });
       export const addon: NativeAddon = loadAddon();`,
    );
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const options = [
      "--noEmit",
      "--strict",
      "--skipLibCheck",
      "false",
      "--module",
      "nodenext",
      "--types",
      "node",
    ];
    const { status, stdout } = run([tsc, ...options, "typed.mts"]);
    expect(status, stdout).to.equal(0);
  });

  it("run with the libtorch that LIBTORCH names, where it is of the same minor version", () => {
    const other = join(directory, "libtorch");
    const libtorch = JSON.parse(readFileSync(join(prebuilt, "package.json"), "utf8")).carillon
      .libtorch as string;
    layLibtorch(other, libtorch);
    expect(run(["-e", LOAD], { LIBTORCH: other }).stdout)
      .to.contain(`libtorch ${libtorch} of ${other}`)
      .and.contain(`{ '${realpathSync(other)}/lib/libtorch_cpu.so' }`);
    writeFileSync(join(other, "build-version"), "2.11.0");
    expect(run(["-e", LOAD], { LIBTORCH: other }).stderr).to.match(
      /LIBTORCH=\S+ is no libtorch 2\.\d+, which/,
    );
  });

  it("run with a libtorch for CUDA where there is a GPU, and say how to get one where there is none", () => {
    const machine = join(directory, "with a GPU");
    const cache = join(machine, "cache");
    const torch = join(cache, `libtorch/torch-${PINNED}/torch`);
    mkdirSync(machine);
    symlinkSync(join(programs, "node"), join(machine, "node"));
    writeFileSync(
      join(machine, "nvidia-smi"),
      `#!/bin/sh\ncase "$*" in *driver*) echo '580.65.06, 9.0, NVIDIA H100' ;; *) echo '0, GPU-1, 80000, 81559, NVIDIA H100' ;; esac\n`,
      { mode: 0o755 },
    );
    const settings = { PATH: `${machine}:${programs}`, CARILLON_CACHE: cache };
    const load = () => run(["-e", LOAD], settings).stdout;
    expect(load())
      .to.match(/^the GPU is not used: .* Run "npx carillon cuda install"$/m)
      .and.contain(`${realpathSync(prebuilt)}/libtorch_cpu.so`);
    layLibtorch(torch, PINNED);
    linkSync(join(prebuilt, "libc10.so"), join(torch, "lib/libtorch_cuda.so"));
    expect(load())
      .to.contain(`${realpathSync(torch)}/lib/libtorch_cpu.so`)
      .and.not.contain("not used");
    const install = (path: string) =>
      run([join(installed, "dist/cli.js"), "cuda", "install"], { ...settings, PATH: path });
    expect(install(settings.PATH).stdout.trim()).to.equal(torch);
    expect(install(programs).stderr).to.match(/nvidia-smi names no GPU here: install NVIDIA's driver/);
  });

  it("say in one line what is wrong with an installation", () => {
    const failure = () => {
      const { status, stderr } = carillon("models");
      expect(status).to.equal(1);
      expect(stderr.trim().split("\n")).to.have.length(1);
      return stderr;
    };
    replaced(
      prebuilt,
      () => {},
      () => expect(failure()).to.contain(`@carillon/${platform} is not installed`),
    );
    replaced(
      join(prebuilt, "carillon.node"),
      (path) => {
        cpSync(`${path}.whole`, path);
        truncateSync(path, 1000);
      },
      () => expect(failure()).to.match(/carillon\.node has 1000 bytes of \d+: the installation is damaged/),
    );
    const manifest = join(prebuilt, "package.json");
    replaced(
      manifest,
      (path) => writeFileSync(path, readFileSync(`${path}.whole`, "utf8").replace(`"${version}"`, '"9.9.9"')),
      () => expect(failure()).to.contain(`is version 9.9.9, this is carillon ${version}`),
    );
  });

  it("are found in the layout of pnpm, where an application sees its own dependencies alone", () => {
    const other = join(directory, "isolated");
    mkdirSync(join(other, "node_modules"), { recursive: true });
    symlinkSync(installed, join(other, "node_modules/carillon"));
    expect(run(["-e", LOAD], {}, other).stdout).to.contain("libtorch_cpu.so");
  });

  it("are gone when they are removed", () => {
    expect(npm("uninstall", "carillon", `@carillon/${platform}`).status).to.equal(0);
    expect(existsSync(installed)).to.equal(false);
    expect(existsSync(prebuilt)).to.equal(false);
  });
});
