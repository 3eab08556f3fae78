/** Tests the published packages in an application on a machine without Python, CMake and a compiler. */
import { execFile, type SpawnSyncReturns, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { provideLibtorch } from "../scripts/setup/libtorch.mjs";
import { canMountDisks, onPrivateDisk } from "./e2e/served-process.js";
import { temporaryDirectory } from "./music/tasks.js";
import { startRegistry } from "./registry.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const stage = join(root, "release/stage");
const platform = `${process.platform}-${process.arch}`;
/** Not the npm beside node: the registry's package `node` has none. */
const npmProgram = realpathSync(findProgram("npm") as string);
const packages = ["carillon", platform, `${platform}-cuda`];
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/** Version of libtorch that set-up installs. */
const PINNED_VERSION = "2.13.0";

/** Loads the addon and prints the path of the libtorch that the process has loaded. */
const LOAD = `require("carillon/native").loadAddon(console.log);
  const maps = require("fs").readFileSync("/proc/self/maps", "utf8");
  console.log(new Set(maps.match(/\\/.*libtorch_cpu\\.so$/gm)))`;

/** Loads the addon and prints whether the process has loaded the named library. */
const LOADED = `require("carillon/native").loadAddon();
  console.log(require("fs").readFileSync("/proc/self/maps", "utf8").includes(process.argv[1]))`;

/** Path of a program on the PATH. */
function findProgram(name: string): string | undefined {
  const folder = (process.env.PATH ?? "").split(delimiter).find((each) => existsSync(join(each, name)));
  return folder && join(folder, name);
}

function changeLastByte(path: string) {
  const bytes = readFileSync(`${path}.whole`);
  bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
  writeFileSync(path, bytes);
}

/**
 * Compiles a library that cannot be loaded, because its dependency is missing or lacks a symbol version.
 * @param needed name of the dependency and, optionally, a symbol version: "libx.so.1 VERSION"
 */
function writeLibraryThatNeeds(path: string, needed: string) {
  const [name, symbolVersion = "V"] = needed.split(" ") as [string, string?];
  const script = `cd "$(mktemp -d)" && echo '${symbolVersion} { global: *; };' > map && echo 'int absent() { return 0; }' > a.c &&
    echo 'int absent(); int present() { return absent(); }' > b.c &&
    cc -shared -fPIC -Wl,-soname,${name} -Wl,--version-script=map a.c -o ${name} &&
    cc -shared -fPIC -nostdlib b.c ./${name} -Wl,-soname,libc10.so -o "$0"`;
  const { status, stderr } = spawnSync("sh", ["-c", script, path], { encoding: "utf8" });
  expect(status, stderr).to.equal(0);
}

describe("installed npm packages", () => {
  const directory = temporaryDirectory();
  const programs = join(directory, "bin");
  const application = join(directory, "an application");
  const installed = join(application, "node_modules/carillon");
  const prebuilt = join(application, `node_modules/@carillon/${platform}`);
  const forCuda = `${prebuilt}-cuda`;
  /** npm and yarn configuration. Our packages come from the test's registry, others from the usual one. */
  let npmrc = "";

  /** Environment of a machine without Python, CMake and a compiler. */
  function bareEnvironment(settings: Record<string, string> = {}): Record<string, string> {
    const { HOME = "", npm_config_cache = "" } = process.env;
    const cache = npm_config_cache === "" ? {} : { npm_config_cache };
    return { HOME, ...cache, PATH: programs, SVC_DEVICE: "cpu", ...settings };
  }

  function run(args: readonly string[], settings: Record<string, string> = {}, cwd = application) {
    return spawnSync(process.execPath, args, { cwd, encoding: "utf8", env: bareEnvironment(settings) });
  }

  const npm = (...args: string[]) => npmIn(application, ...args);

  function npmIn(cwd: string, ...args: string[]): SpawnSyncReturns<string> {
    return run([npmProgram, ...args, "--prefer-offline", "--no-audit", "--no-fund"], {}, cwd);
  }

  function makeApplication(at: string) {
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, "package.json"), JSON.stringify({ name: "application", private: true }));
    writeFileSync(join(at, ".npmrc"), npmrc);
  }

  const carillon = (...args: string[]) => run([join(installed, "dist/cli/main.js"), ...args]);

  /** Imitates a user's own installation of libtorch with links to the package's libraries. */
  function linkLibtorch(at: string, libtorch: string) {
    mkdirSync(join(at, "include/ATen"), { recursive: true });
    mkdirSync(join(at, "lib"));
    writeFileSync(join(at, "include/ATen/ATen.h"), "");
    writeFileSync(join(at, "build-version"), libtorch);
    for (const name of readdirSync(prebuilt).filter((file) => file.includes(".so")))
      linkSync(join(prebuilt, name), join(at, "lib", name));
  }

  /** Runs a test while a file of the installed packages is replaced. */
  function withReplacedFile(path: string, by: (path: string) => void, test: () => void) {
    renameSync(path, `${path}.whole`);
    try {
      by(path);
      test();
    } finally {
      renameSync(`${path}.whole`, path);
    }
  }

  /** Runs a test while the cuda package offers an addon for libtorch 2.14, which is a copy of the addon for 2.13. */
  function withAddonFor214(test: () => void) {
    const name = "carillon-2.14.node";
    copyFileSync(join(forCuda, "carillon-2.13.node"), join(forCuda, name));
    const edit = (path: string) => {
      const manifest = JSON.parse(readFileSync(`${path}.whole`, "utf8"));
      manifest.carillon.addons["2.14"] = name;
      manifest.carillon.files[name] = manifest.carillon.files["carillon-2.13.node"];
      writeFileSync(path, JSON.stringify(manifest));
    };
    try {
      withReplacedFile(join(forCuda, "package.json"), edit, test);
    } finally {
      rmSync(join(forCuda, name));
    }
  }

  /** Creates a folder of programs that simulate a machine with an NVIDIA GPU. */
  function makeMachine(name: string, driver: string) {
    const machine = join(directory, name);
    mkdirSync(machine);
    symlinkSync(join(programs, "node"), join(machine, "node"));
    writeFileSync(
      join(machine, "nvidia-smi"),
      `#!/bin/sh\ncase "$*" in *driver*) echo '${driver}' ;; *) echo '0, GPU-1, 80000, 81559, A GPU' ;; esac\n`,
      { mode: 0o755 },
    );
    return machine;
  }

  before(async function () {
    this.timeout(600_000);
    const staged = spawnSync(process.execPath, [join(root, "scripts/release.mjs"), "--stage"], {
      encoding: "utf8",
    });
    expect(staged.status, staged.stderr).to.equal(0);
    mkdirSync(programs);
    for (const name of ["node", "sh", "ffmpeg", "ffprobe"]) {
      const found = findProgram(name);
      if (found !== undefined) symlinkSync(found, join(programs, name));
    }
    for (const example of ["embed.mjs", "embed.cjs"]) {
      mkdirSync(application, { recursive: true });
      cpSync(join(root, "examples", example), join(application, example));
    }
    // The tarballs are not compressed, because compression would take most of the test's time.
    const published = packages.map((name) => {
      const tarball = join(directory, `${name}.tgz`);
      const made = spawnSync("tar", ["-cf", tarball, "-C", stage, `--transform=s,^${name},package,`, name]);
      expect(made.status, String(made.stderr)).to.equal(0);
      return { folder: join(stage, name), tarball };
    });
    const registry = await startRegistry(published);
    npmrc = `@carillon:registry=${registry.url}\n`;
    makeApplication(application);
    const install = npm("install", "--ignore-scripts", join(directory, "carillon.tgz"));
    expect(install.status, install.stderr).to.equal(0);
  });

  it("packages have one version, and contain neither source maps nor paths of the build machine", () => {
    const read = (path: string) => JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
    const [ours, native] = [read(installed), read(prebuilt)];
    expect(ours.optionalDependencies).to.deep.equal({
      [`@carillon/${platform}`]: version,
      [`@carillon/${platform}-cuda`]: version,
    });
    expect(ours.devDependencies).to.have.all.keys("cmake-js");
    expect(ours.scripts).to.have.all.keys("setup");
    for (const manifest of [native, read(forCuda)])
      expect(manifest).to.deep.include({ version, os: [process.platform], cpu: [process.arch] });
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
    const addon = readFileSync(join(prebuilt, "carillon.node"), "latin1");
    for (const folder of [root, join(homedir(), ".cache")])
      expect(addon.includes(folder), `the addon names ${folder}`).to.equal(false);
  });

  it("packing fails if a binary requires a newer glibc than documented", () => {
    const library = join(directory, "too-new.so");
    writeLibraryThatNeeds(library, "libc.so.6 GLIBC_2.29");
    const program = `import(process.argv[1]).then(({ checkSymbolVersions }) => checkSymbolVersions(process.argv[2]))`;
    const { stderr } = spawnSync("node", ["-e", program, join(root, "scripts/release/elf.mjs"), library], {
      encoding: "utf8",
    });
    expect(stderr).to.contain("too-new.so requires absent@GLIBC_2.29, newer than GLIBC_2.28");
  });

  it("an ES module makes a song on a processor without AVX-512, and no package file changes", () => {
    const before = readdirSync(join(application, "node_modules"), { recursive: true }).length;
    const cap = { CARILLON_CPU_KERNELS: "avx2", ATEN_CPU_CAPABILITY: "avx2", ONEDNN_MAX_CPU_ISA: "AVX2" };
    const { stdout, stderr } = run(["embed.mjs", "a slow waltz", "song.wav"], cap);
    expect(stdout, stderr).to.match(/seed \d+, \d+ bpm/);
    expect(statSync(join(application, "song.wav")).size).to.be.above(1_000_000);
    expect(readdirSync(join(application, "node_modules"), { recursive: true })).to.have.length(before);
  });

  it("CommonJS code makes a song without AVX2, without a network and in a read-only folder", () => {
    const home = join(directory, "home");
    mkdirSync(home);
    const isRoot = process.getuid?.() === 0;
    if (isRoot)
      for (const [path, mode] of [
        [directory, 0o755],
        [home, 0o777],
      ] as const)
        chmodSync(path, mode);
    expect(spawnSync("chmod", ["-R", "a-w,a+rX", join(application, "node_modules")]).status).to.equal(0);
    const nobody = isRoot ? { uid: 65_534, gid: 65_534 } : {};
    const alone =
      spawnSync("unshare", ["--user", "--net", "true"], nobody).status === 0
        ? ["unshare", "--user", "--net"]
        : [];
    const song = join(home, "song.wav");
    // A copy, because the user nobody cannot read Node in another user's folder.
    const node = join(directory, "node");
    copyFileSync(process.execPath, node);
    const [program = "", ...args] = [...alone, node, join(application, "embed.cjs"), "a slow waltz", song];
    try {
      const { stdout, stderr } = spawnSync(program, args, {
        cwd: home,
        encoding: "utf8",
        env: {
          HOME: home,
          PATH: `${programs}${delimiter}${process.env.PATH}`,
          SVC_DEVICE: "cpu",
          CARILLON_CPU_KERNELS: "none",
          ATEN_CPU_CAPABILITY: "default",
          ONEDNN_MAX_CPU_ISA: "SSE41",
        },
        ...nobody,
      });
      expect(stdout, stderr).to.match(/seed \d+, \d+ bpm/);
      expect(statSync(song).size).to.be.above(1_000_000);
    } finally {
      spawnSync("chmod", ["-R", "u+w", join(application, "node_modules")]);
    }
  });

  it("the command line uses the optional ffmpeg package if the system has no ffmpeg", () => {
    expect(carillon("--version").stdout.trim()).to.equal(version);
    const bare = join(directory, "without ffmpeg");
    mkdirSync(bare);
    for (const name of ["node", "sh"]) symlinkSync(join(programs, name), join(bare, name));
    const generate = (...args: string[]) =>
      run([join(installed, "dist/cli/main.js"), "generate", "a waltz", "--duration", "10", ...args], {
        PATH: bare,
      });
    const failed = generate("--steps", "1", "--out", "without.mp3");
    expect(failed.stderr).to.match(/ffmpeg program is not on the PATH.*npm install @ffmpeg-installer/);
    expect(existsSync(join(application, "without.mp3"))).to.equal(false);
    const install = npm("install", "--ignore-scripts", "@ffmpeg-installer/ffmpeg");
    expect(install.status, install.stderr).to.equal(0);
    const made = generate("--out", "with.mp3");
    expect(made.status, made.stderr).to.equal(0);
    expect(readFileSync(join(application, "with.mp3"), "latin1")).to.match(/^ID3/);
  });

  it("two processes can start at the same time @slow", async () => {
    const home = join(directory, "home of two");
    mkdirSync(home);
    const songs = ["one.wav", "two.wav"].map((name) => join(home, name));
    const cli = join(installed, "dist/cli/main.js");
    const make = (song: string) =>
      promisify(execFile)(process.execPath, [cli, "generate", "a waltz", "--duration", "10", "--out", song], {
        cwd: application,
        env: bareEnvironment({ HOME: home }),
      });
    await Promise.all(songs.map(make));
    for (const song of songs) expect(statSync(song).size).to.be.above(1_000_000);
  });

  it("carillon/native exports the native addon", () => {
    const program = 'console.log(require("carillon/native").loadAddon().runtimeInfo().libtorchVersion)';
    expect(run(["-e", program]).stdout).to.match(/^2\.\d+/);
  });

  it("packages have TypeScript types, including the types of their dependencies", function () {
    this.timeout(600_000);
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

  it("packages run with the libtorch in LIBTORCH if its minor version matches", () => {
    const other = join(directory, "libtorch");
    const libtorch = JSON.parse(readFileSync(join(prebuilt, "package.json"), "utf8")).carillon
      .libtorch as string;
    linkLibtorch(other, libtorch);
    expect(run(["-e", LOAD], { LIBTORCH: other }).stdout)
      .to.contain(`libtorch ${libtorch} in ${other}`)
      .and.contain(`{ '${realpathSync(other)}/lib/libtorch_cpu.so' }`);
    const second = `process.env.LIBTORCH = process.argv[1]; require("carillon/native").loadAddon()`;
    expect(run(["-e", `${LOAD}; ${second}`, other]).stderr).to.match(
      /This process has already loaded another libtorch, \S.*: load carillon in a separate process/,
    );
    writeFileSync(join(other, "build-version"), "2.11.0");
    expect(run(["-e", LOAD], { LIBTORCH: other }).stderr).to.match(
      /LIBTORCH=\S+ is not libtorch 2\.13 \(the installed addons support no other version\): point it at one, or unset it/,
    );
  });

  it("loads the addon for the minor version of the libtorch in LIBTORCH, even if none is bundled @slow", () => {
    const other = join(directory, "libtorch of 2.14");
    linkLibtorch(other, "2.14.1");
    withAddonFor214(() => {
      const load = () => run(["-e", LOADED, "carillon-2.14.node"], { LIBTORCH: other }).stdout;
      expect(load()).to.contain("true");
      withReplacedFile(
        prebuilt,
        () => {},
        () => {
          expect(load()).to.contain("true");
          expect(run(["-e", LOAD], { CARILLON_CACHE: other }).stderr).to.match(
            /There is no libtorch 2\.13 or 2\.14 .*point LIBTORCH at one, run "npx carillon cuda install", or "npm install @carillon/,
          );
        },
      );
    });
  });

  it("packages use a CUDA libtorch on a machine with a GPU, or say how to install it", () => {
    const machine = makeMachine("with a GPU", "580.65.06, 9.0, NVIDIA H100");
    const cache = join(machine, "cache");
    const torch = join(cache, `libtorch/torch-${PINNED_VERSION}/torch`);
    const settings = { PATH: `${machine}:${programs}`, CARILLON_CACHE: cache };
    const load = () => run(["-e", LOAD], settings).stdout;
    expect(load())
      .to.match(/^the GPU is not used: .* Run "npx carillon cuda install"$/m)
      .and.contain(`${realpathSync(prebuilt)}/libtorch_cpu.so`);
    linkLibtorch(torch, PINNED_VERSION);
    linkSync(join(prebuilt, "libc10.so"), join(torch, "lib/libtorch_cuda.so"));
    expect(load())
      .to.contain(`${realpathSync(torch)}/lib/libtorch_cpu.so`)
      .and.not.contain("not used");
    const install = (path: string) =>
      run([join(installed, "dist/cli/main.js"), "cuda", "install"], { ...settings, PATH: path });
    expect(install(settings.PATH).stdout.trim()).to.equal(torch);
    expect(install(programs).stderr).to.match(/nvidia-smi lists no GPU: install NVIDIA's driver/);
  });

  /** Runs the command line and returns its error, which must be one line. */
  function failure(settings: Record<string, string> = {}, args: readonly string[] = ["models"]): string {
    const { status, stderr } = run([join(installed, "dist/cli/main.js"), ...args], settings);
    expect(status, stderr).to.equal(1);
    expect(stderr.trim().split("\n"), stderr).to.have.length(1);
    return stderr;
  }

  it("a faulty installation is reported in one line @slow", () => {
    const addon = join(prebuilt, "carillon.node");
    const both = (test: () => void) =>
      withReplacedFile(
        prebuilt,
        () => {},
        () => withReplacedFile(forCuda, () => {}, test),
      );
    both(() => expect(failure()).to.contain(`@carillon/${platform} is not installed`));
    const truncate = (path: string) => {
      cpSync(`${path}.whole`, path);
      truncateSync(path, 1000);
    };
    withReplacedFile(addon, truncate, () =>
      expect(failure()).to.match(
        /carillon\.node has 1000 bytes instead of \d+: the installation is damaged\. Remove /,
      ),
    );
    withReplacedFile(addon, changeLastByte, () =>
      expect(failure()).to.match(
        /carillon\.node differs from the published file: the installation is damaged/,
      ),
    );
    withReplacedFile(
      join(prebuilt, "package.json"),
      (path) => writeFileSync(path, readFileSync(`${path}.whole`, "utf8").replace(`"${version}"`, '"9.9.9"')),
      () => expect(failure()).to.contain(`is version 9.9.9, but carillon is ${version}`),
    );
    withReplacedFile(join(prebuilt, "libtorch_cpu.so"), changeLastByte, () =>
      expect(carillon("doctor").stdout).to.match(
        /libtorch_cpu\.so differs from the published file.*\n {5}-> Remove \S.* and run "npm install" again/,
      ),
    );
  });

  it("an error names in one line the system or CUDA library that libtorch cannot find @slow", () => {
    const other = join(directory, "libtorch with faults");
    linkLibtorch(other, PINNED_VERSION);
    const at = join(other, "lib/libc10.so");
    for (const [source, answer] of [
      ["libc.so.6 GLIBC_9.99", /It needs GLIBC 9\.99 or later, and this system is older/],
      [
        "libcudart.so.99",
        /libcudart\.so\.99.*This libtorch does not find NVIDIA's libraries.*carillon cuda install/,
      ],
    ] as const) {
      rmSync(at);
      writeLibraryThatNeeds(at, source);
      expect(failure({ LIBTORCH: other })).to.match(answer);
    }
  });

  it("cuda install reports a failure in one line, and leaves no files behind @slow", () => {
    const cache = join(directory, "cache for CUDA");
    const attempt = (machine: string, settings = {}) =>
      failure({ PATH: `${machine}:${programs}`, CARILLON_CACHE: cache, ...settings }, ["cuda", "install"]);
    const old = makeMachine("with an old GPU", "470.10, 3.5, Tesla K40");
    expect(attempt(old)).to.match(
      /Tesla K40 \(compute capability 3\.5\) .* cannot run any build .* Install driver 525/,
    );
    const machine = makeMachine("without pip", "580.65.06, 9.0, NVIDIA H100");
    expect(attempt(machine)).to.match(
      /Without pip only libtorch 2\.14\.1 for cu130 .*needs 2\.13 .*install python3 with pip/,
    );
    withAddonFor214(() => {
      const offline = { CARILLON_WHEELS: "http://127.0.0.1:1" };
      expect(attempt(machine, offline)).to.match(/127\.0\.0\.1:1 cannot be reached .*Check the network/);
      if (!canMountDisks()) return;
      const bare = ["env", `PATH=${machine}:${programs}`, `CARILLON_CACHE=${cache}`, process.execPath];
      const [program, args] = onPrivateDisk({ directory: cache, sizeKiB: 4096 }, bare);
      const command = [...args, join(installed, "dist/cli/main.js"), "cuda", "install"];
      const { stderr } = spawnSync(program, command, { encoding: "utf8" });
      expect(stderr.trim()).to.match(
        /^carillon: libtorch needs .* GB of free space on the disk of .+\. .*set CARILLON_CACHE to another disk.*$/,
      );
    });
    expect(readdirSync(join(cache, "libtorch")).filter((name) => !name.endsWith(".part"))).to.deep.equal([]);
  });

  it("packages install on unsupported platforms; loading the addon reports that it is missing @slow", function () {
    this.timeout(600_000);
    const other = join(directory, "another platform");
    makeApplication(other);
    const cpu = process.arch === "x64" ? "arm64" : "x64";
    const tarball = join(directory, "carillon.tgz");
    const install = npmIn(other, "install", "--ignore-scripts", `--cpu=${cpu}`, tarball);
    expect(install.status, install.stderr).to.equal(0);
    expect(existsSync(join(other, "node_modules/@carillon"))).to.equal(false);
    expect(run(["-e", LOAD], {}, other).stderr).to.match(
      /There is no native addon: \S+ is not installed .*unsupported platforms.*build one with/,
    );
  });

  it("an installation that fills the disk leaves no partial packages @slow", function () {
    if (!canMountDisks()) this.skip();
    this.timeout(600_000);
    const disk = join(directory, "disk");
    mkdirSync(disk);
    const script = `cd "$0" && echo '{}' > package.json && node "$1" install --ignore-scripts --no-audit --no-fund "$2"
      echo "ended with $?"; ls -d node_modules/@carillon/*`;
    const tarball = join(directory, `${platform}.tgz`);
    const command = ["bash", "-c", script, disk, npmProgram, tarball];
    const { stdout, stderr } = spawnSync(
      ...onPrivateDisk({ directory: disk, sizeKiB: 100 * 1024 }, command),
      {
        encoding: "utf8",
      },
    );
    expect(stderr).to.contain("ENOSPC");
    expect(stdout)
      .to.match(/^ended with [1-9]\d*$/m)
      .and.not.contain("@carillon");
  });

  it("the addon can be built from source if no prebuilt addon is used @slow", () => {
    const { devDependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
    const cmake = `--package=cmake-js@${devDependencies["cmake-js"]}`;
    const args = [
      "exec",
      "--yes",
      cmake,
      "--",
      "cmake-js",
      "configure",
      `--CDLIBTORCH=${provideLibtorch().directory}`,
    ];
    const { status, stderr } = spawnSync("npm", args, { cwd: installed, encoding: "utf8" });
    expect(status, stderr).to.equal(0);
    rmSync(join(installed, "build"), { recursive: true });
  });

  it("packages work in pnpm's layout, where an application sees only its own dependencies @slow", () => {
    const other = join(directory, "isolated");
    makeApplication(other);
    mkdirSync(join(other, "node_modules"));
    symlinkSync(installed, join(other, "node_modules/carillon"));
    const { stdout, stderr } = run(["-e", LOAD], {}, other);
    expect(stdout, stderr).to.contain("libtorch_cpu.so");
  });

  it("packages work in yarn's layout with only the cuda package if libtorch is installed elsewhere @slow", function () {
    this.timeout(600_000);
    const [tools, other] = [join(directory, "yarn"), join(directory, "with yarn")];
    for (const folder of [tools, other]) makeApplication(folder);
    // Yarn requests the packages of all platforms, and some registries do not have all of them.
    mkdirSync(join(other, "stub"));
    writeFileSync(join(other, "stub/package.json"), '{"name":"msgpackr-extract","version":"3.0.7"}');
    const resolutions = { "**/msgpackr-extract": "file:./stub" };
    writeFileSync(
      join(other, "package.json"),
      JSON.stringify({ name: "application", private: true, resolutions }),
    );
    const yarn = npmIn(tools, "install", "yarn@1.22.22");
    expect(yarn.status, yarn.stderr).to.equal(0);
    const added = run(
      [
        join(tools, "node_modules/yarn/bin/yarn.js"),
        "add",
        "--ignore-scripts",
        "--non-interactive",
        "--ignore-optional",
        "--cache-folder",
        join(directory, "yarn cache"),
        ...["carillon", `${platform}-cuda`].map((name) => join(directory, `${name}.tgz`)),
      ],
      {},
      other,
    );
    expect(added.status, added.stderr).to.equal(0);
    const libtorch = join(directory, "libtorch beside yarn");
    linkLibtorch(libtorch, PINNED_VERSION);
    expect(run(["-e", LOAD], { LIBTORCH: libtorch }, other).stdout).to.contain(
      `${libtorch}/lib/libtorch_cpu.so`,
    );
  });

  it("uninstalling the packages leaves no files behind", () => {
    expect(npm("uninstall", "carillon").status).to.equal(0);
    expect(existsSync(installed)).to.equal(false);
    expect(existsSync(prebuilt)).to.equal(false);
  });
});
