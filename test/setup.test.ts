/** Tests which libtorch and core set-up chooses, on machines that scripts simulate. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { temporaryDirectory } from "./music/tasks.js";
import { startRegistry } from "./registry.js";

const libtorch = fileURLToPath(new URL("../scripts/setup/libtorch.mjs", import.meta.url));

interface Machine {
  /** Output of nvidia-smi: driver, compute capability and name. Undefined if nvidia-smi is not installed. */
  gpu?: string;
  /** Whether Python lacks pip. */
  lacksPip?: boolean;
  /** Whether Python has a CPU build of torch. */
  hasCpuTorch?: boolean;
  /** Wheels that pip can install. pip fails for all others. */
  wheels: string[];
}

describe("choice of libtorch during set-up", () => {
  const root = temporaryDirectory();

  function provide({ gpu, lacksPip = false, hasCpuTorch = false, wheels }: Machine) {
    const directory = mkdtempSync(join(root, "machine-"));
    const program = (name: string, script: string) => {
      writeFileSync(join(directory, name), `#!/bin/bash\n${script}\n`);
      chmodSync(join(directory, name), 0o755);
    };
    const torch = (at: string) =>
      `mkdir -p ${at}/include/ATen ${at}/lib; touch ${at}/include/ATen/ATen.h; echo "__version__ = '2.13.0'" > ${at}/version.py`;
    const own = join(directory, "site/torch");
    if (hasCpuTorch) spawnSync("bash", ["-c", torch(own)]);
    if (gpu !== undefined) program("nvidia-smi", `echo '${gpu}'`);
    program(
      "python3",
      `case "$*" in
        -c*) ${hasCpuTorch ? `echo ${own}` : "exit 1"} ;;
        "-m pip --version") exit ${lacksPip ? 1 : 0} ;;
        *) echo "$*" >> ${directory}/asked
           for wheel in ${wheels.map((wheel) => `"${wheel}"`).join(" ")}; do
             [[ "$*" == *"$wheel" ]] && { target="$5/torch"; ${torch("$target")}; exit 0; }
           done
           exit 1 ;;
      esac`,
    );
    for (const name of ["bash", "mkdir", "touch"]) {
      program(name, `exec ${["/usr/bin", "/bin"].map((bin) => join(bin, name)).find(existsSync)} "$@"`);
    }
    mkdirSync(join(directory, "cache"));
    const source = `const { provideLibtorch } = await import(${JSON.stringify(libtorch)});
      try { console.log(provideLibtorch().directory); } catch (error) { console.error(error.message); }`;
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", source], {
      encoding: "utf8",
      env: { PATH: directory, CARILLON_CACHE: join(directory, "cache") },
    });
    const asked = join(directory, "asked");
    return {
      directory: stdout.trim().replace(`${directory}/`, ""),
      stderr,
      asked: existsSync(asked) ? readFileSync(asked, "utf8").trim().split("\n") : [],
    };
  }

  for (const [gpu, build] of [
    ["580.65.06, 9.0, NVIDIA H100", "cu130"],
    ["575.51.03, 12.0, NVIDIA GeForce RTX 5090", "cu128"],
    ["550.54.14, 8.9, NVIDIA GeForce RTX 4090", "cu126"],
    ["580.65.06, 6.1, NVIDIA GeForce GTX 1080", "cu126"],
  ] as const) {
    it(`set-up installs libtorch ${build} for ${gpu}`, () => {
      const wheel = `torch==2.13.0+${build}`;
      const { directory, asked } = provide({ gpu, wheels: [wheel] });
      expect(asked).to.have.length(1);
      expect(asked[0]).to.contain(wheel).and.not.contain("--no-deps");
      expect(directory).to.match(/^cache\/libtorch\/torch-2\.13\.0.*\/torch$/);
    });
  }

  it("set-up installs libtorch for the CPU if there is no NVIDIA driver", () => {
    expect(provide({ wheels: ["torch==2.13.0+cpu"] }).directory).to.equal(
      "cache/libtorch/torch-2.13.0+cpu/torch",
    );
  });

  it("set-up installs libtorch for the CPU, with a warning, if no build supports the GPU", () => {
    const { directory, stderr } = provide({ gpu: "470.10, 3.5, Tesla K40", wheels: ["torch==2.13.0+cpu"] });
    expect(directory).to.contain("+cpu");
    expect(stderr).to.match(/THE GPU IS NOT USED: Tesla K40.*driver 470\.10.*Install driver 525/);
  });

  it("set-up does not use the CPU build of libtorch in Python if there is a GPU", () => {
    const gpu = "580.65.06, 9.0, NVIDIA H100";
    const wheels = ["torch==2.13.0+cu130"];
    const { directory, stderr } = provide({ gpu, hasCpuTorch: true, wheels });
    expect(directory).to.equal("cache/libtorch/torch-2.13.0/torch");
    expect(stderr).to.contain("built for the CPU, and this machine has a GPU; not used");
    expect(provide({ hasCpuTorch: true, wheels }).directory).to.equal("site/torch");
  });

  it("set-up takes libtorch from PyTorch's index if pip's index has no build for the GPU", () => {
    const { asked } = provide({
      gpu: "550.54.14, 8.9, NVIDIA L4",
      wheels: ["whl/cu126 torch==2.13.0+cu126"],
    });
    expect(asked).to.have.length(2);
    expect(asked[1]).to.match(/--extra-index-url https:\/\/\S+\/cu126 torch==2\.13\.0\+cu126$/);
  });

  it("set-up says what to install if Python has no pip", () => {
    const { stderr, asked } = provide({ lacksPip: true, wheels: [] });
    expect(asked).to.deep.equal([]);
    expect(stderr.trim()).to.match(/python3-pip/);
  });
});

describe("download of a prebuilt core during set-up", () => {
  const root = temporaryDirectory();
  const clone = join(root, "clone");
  const name = `@carillon/${process.platform}-${process.arch}`;

  /** Runs `installPrebuilt` in a copy of this repository, with the given registry, and returns its result. */
  function take(registry: string, settings: Record<string, string> = {}) {
    const module = join(clone, "scripts/setup/prebuilt.mjs");
    const source = `const { installPrebuilt } = await import(${JSON.stringify(module)}); console.log(installPrebuilt());`;
    writeFileSync(join(clone, ".npmrc"), `@carillon:registry=${registry}\n`);
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", source], {
      cwd: clone,
      encoding: "utf8",
      env: { ...process.env, PATH: `${join(root, "bin")}:${process.env.PATH}`, ...settings },
    });
    expect(stdout, stderr).to.match(/^(true|false)\n$/);
    return stdout === "true\n";
  }

  const installed = () => existsSync(join(clone, "node_modules", name, "carillon.node"));

  /** Publishes a prebuilt core. Its source hash matches the copy of the repository only if `matchesSources`. */
  async function publish(version: string, matchesSources: boolean) {
    const folder = mkdtempSync(join(root, "package-"));
    const native = join(clone, "scripts/setup/native.mjs");
    const source = `console.log((await import(${JSON.stringify(native)})).sourcesHash())`;
    const print = spawnSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" });
    const sources = matchesSources ? print.stdout.trim() : "other sources";
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version, carillon: { sources } }));
    writeFileSync(join(folder, "carillon.node"), "");
    const tarball = `${folder}.tgz`;
    spawnSync("tar", ["-czf", tarball, "-C", folder, "--transform=s,^[.],package,", "."]);
    return startRegistry([{ folder, tarball }]);
  }

  before(() => {
    mkdirSync(join(clone, "native"), { recursive: true });
    writeFileSync(join(clone, "native/core.cpp"), "int answer() { return 42; }");
    writeFileSync(join(clone, "CMakeLists.txt"), "");
    writeFileSync(join(clone, "package.json"), JSON.stringify({ name: "carillon", version: "1.2.3" }));
    for (const folder of ["scripts/setup", "src/libtorch"])
      cpSync(fileURLToPath(new URL(`../${folder}`, import.meta.url)), join(clone, folder), {
        recursive: true,
      });
    // Hides this machine's GPU.
    mkdirSync(join(root, "bin"));
    writeFileSync(join(root, "bin/nvidia-smi"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  });

  it("set-up downloads a prebuilt core once, unless disabled, outdated or built here", async () => {
    const registry = await publish("1.2.3", true);
    expect(take(registry.url, { CARILLON_PREBUILT: "0" })).to.equal(false);
    expect(installed()).to.equal(false);
    expect(take(registry.url)).to.equal(true);
    expect(installed()).to.equal(true);
    await registry.close();
    writeFileSync(join(clone, "native/README.md"), "A core that answers.");
    expect(take(registry.url)).to.equal(true);
    writeFileSync(join(clone, "native/core.cpp"), "int answer() { return 43; }");
    expect(take(registry.url)).to.equal(false);
    mkdirSync(join(clone, "build/Release"), { recursive: true });
    writeFileSync(join(clone, "build/Release/carillon.node"), "");
    expect(take(registry.url)).to.equal(false);
  });

  for (const [what, version, matchesSources] of [
    ["another version", "1.2.4", true],
    ["other sources", "1.2.3", false],
  ] as const) {
    it(`set-up does not install a prebuilt core of ${what}`, async () => {
      rmSync(join(clone, "node_modules"), { recursive: true, force: true });
      rmSync(join(clone, "build"), { recursive: true, force: true });
      const registry = await publish(version, matchesSources);
      expect(take(registry.url)).to.equal(false);
      expect(installed()).to.equal(false);
      await registry.close();
    });
  }
});

describe("build of the command line", () => {
  it("set-up makes the command line executable, because npx runs it", () => {
    const program = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
    expect(spawnSync(program, ["--version"], { encoding: "utf8" }).stdout).to.match(/^\d+\.\d+\.\d+\s*$/);
  });
});
