/** System programs: through apt where that is possible, else one line saying what to install. */
import { exists, run, SetupError, say } from "./run.mjs";

const TOOLS = [
  { command: "cmake", args: ["--version"], packageName: "cmake", use: "builds the native core" },
  { command: "c++", args: ["--version"], packageName: "g++", use: "compiles the native core" },
];
const PIP = {
  command: "python3",
  args: ["-m", "pip", "--version"],
  packageName: "python3-pip",
  use: "installs libtorch; not needed where LIBTORCH names one",
};
const AUDIO = {
  command: "ffmpeg",
  args: ["-version"],
  packageName: "ffmpeg",
  use: "encodes and decodes audio",
};

const BROWSER = {
  command: "chromium",
  args: ["--version"],
  packageName: "chromium",
  use: "shows the city's page to its test",
};

const REDIS = {
  command: "redis-server",
  args: ["--version"],
  packageName: "redis-server",
  use: "runs the tests of fleets",
};

const OPENSSL = {
  command: "openssl",
  args: ["version"],
  packageName: "openssl",
  use: "makes the certificates of tests",
};

export const installBuildTools = () => install(TOOLS);
export const installPip = () => install([PIP]);
export const hasPip = () => exists(PIP.command, PIP.args);
export const installAudioTools = () => install([AUDIO]);

/** Without a browser, Redis or OpenSSL the tests of pages or fleets fail and say so; the others need none. */
export function installTestPrograms() {
  try {
    install([BROWSER, REDIS, OPENSSL]);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
  }
}

function install(programs) {
  const missing = programs.filter(({ command, args }) => !exists(command, args));
  if (missing.length === 0) return;
  const names = missing.map(({ packageName }) => packageName);
  const why = missing.map(({ command, use }) => `${command} (${use})`).join(", ");
  if (process.getuid?.() !== 0 || !exists("apt-get")) {
    throw new SetupError(
      `missing: ${why}. Install it, for example: sudo apt-get install -y ${names.join(" ")}`,
    );
  }
  say(`installing ${why} with apt-get`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  run("apt-get", ["update"], { env, log: "apt-update" });
  run("apt-get", ["install", "-y", "--no-install-recommends", ...names], { env, log: "apt" });
}
