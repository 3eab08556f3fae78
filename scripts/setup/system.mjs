/** Installs system programs with apt if possible, else prints what to install. */
import { hasPip } from "../../src/libtorch/find-libtorch.mjs";
import { canRun, run, SetupError, say } from "./run.mjs";

/** Programs needed for a build. `packageName` is set if Debian's package is not named like the command. */
const TOOLS = [
  { command: "cmake", use: "builds the native core" },
  { command: "c++", packageName: "g++", use: "compiles the native core" },
];
const PIP = {
  command: "python3",
  isInstalled: hasPip,
  packageName: "python3-pip",
  use: "installs libtorch; not needed if LIBTORCH is set",
};
const AUDIO = { command: "ffmpeg", args: ["-version"], use: "reads audio, and writes all formats but wav" };
const TEST_PROGRAMS = [
  { command: "chromium-headless-shell", use: "runs the tests of the web pages" },
  { command: "redis-server", use: "runs the tests of fleets" },
  { command: "openssl", args: ["version"], use: "makes the certificates of tests" },
];

export const installBuildTools = () => install(TOOLS);
export const installPip = () => install([PIP]);
/** Installs ffmpeg. Without it songs are written as wav. */
export const installAudioTools = () => tryToInstall([AUDIO]);
/** Installs programs for tests of pages and fleets. Without them these tests fail with a message. */
export const installTestPrograms = () => tryToInstall(TEST_PROGRAMS);

function tryToInstall(programs) {
  try {
    install(programs);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
  }
}

function install(programs) {
  const missing = programs.filter(
    ({ command, args, isInstalled = () => canRun(command, args) }) => !isInstalled(),
  );
  if (missing.length === 0) return;
  const names = missing.map(({ command, packageName = command }) => packageName);
  const why = missing.map(({ command, use }) => `${command} (${use})`).join(", ");
  if (process.getuid?.() !== 0 || !canRun("apt-get")) {
    throw new SetupError(
      `missing: ${why}. Install it, for example: sudo apt-get install -y ${names.join(" ")}`,
    );
  }
  say(`installing ${why} with apt-get`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  run("apt-get", ["update"], { env, log: "apt-update" });
  run("apt-get", ["install", "-y", "--no-install-recommends", ...names], { env, log: "apt" });
}
