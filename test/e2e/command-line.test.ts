import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { listenLocally } from "../local-server.js";
import { writeLora } from "../music/adapter-files.js";
import { writeRecording } from "../music/audio/recordings.js";
import { longSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { cli, endServed, ServedProcess, spawnCli } from "./served-process.js";

interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

async function carillon(args: readonly string[], settings: Record<string, string> = {}): Promise<Outcome> {
  const child = spawnCli(args, settings);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, "exit") as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Returns the URL of a server that serves only music, once the server has printed it. */
async function servedUrl(child: ChildProcess): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  for await (const line of lines) {
    expect(line).to.match(/^music on http:/);
    return line.slice("music on ".length);
  }
  throw new Error("the server exited before it was serving");
}

describe("the command line", () => {
  const directory = temporaryDirectory();
  const servers: ChildProcess[] = [];

  afterEach(() => {
    for (const child of servers) child.kill("SIGKILL");
    return endServed();
  });

  function server(args: readonly string[]): ChildProcess {
    const child = spawnCli(args);
    servers.push(child);
    return child;
  }

  it("carillon generate writes a song in the format that the name of the output file chooses", async () => {
    const out = join(directory, "song.flac");
    const args = ["--duration", "10", "--steps", "1", "--seed", "5", "--out", out];
    const { code, stdout, stderr } = await carillon(["generate", "a short song", ...args]);
    expect(code, stderr).to.equal(0);
    expect(stdout.trim()).to.equal(out);
    expect(stderr).to.include("Generating music").and.include("seed 5");
    const probe = ["-v", "error", "-show_entries", "stream=codec_name,channels", "-of", "csv=p=0", out];
    expect(execFileSync("ffprobe", probe, { encoding: "utf8" }).trim()).to.equal("flac,2");
  });

  it("carillon radio plays songs until it is quit; keys keep a song, skip it, and ask for more like it", async () => {
    const player = join(directory, "player.mjs");
    writeFileSync(player, "setInterval(() => {}, 1000);");
    const options = ["--duration", "10", "--player", `${process.execPath} ${player}`, "--keep-in", directory];
    const child = spawn(process.execPath, [cli, "radio", "calm piano", ...options], {
      env: { ...process.env, SVC_DEVICE: "cpu" },
      stdio: ["pipe", "ignore", "pipe"],
    });
    servers.push(child);
    const ended = once(child, "exit");
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stderr })) {
      lines.push(line);
      if (line.startsWith("playing")) child.stdin.write(lines.length < 4 ? "km" : "q");
      if (line.startsWith("the next songs")) child.stdin.write("n");
    }
    expect(await ended, lines.join("\n")).to.deep.equal([0, null]);
    const [first, second] = lines.filter((line) => line.startsWith("playing"));
    const factsOf = (line = "") => line.replace(/, seed \d+$/, "");
    expect(factsOf(second)).to.equal(factsOf(first));
    expect(second).not.to.equal(first);
    const kept = lines.find((line) => line.startsWith("kept "))?.slice("kept ".length) as string;
    expect(kept).to.match(/calm piano - \d+\.wav$/);
    expect(statSync(kept).size).to.be.closeTo(44 + 10 * 48_000 * 4, 4 * 4096);
  });

  it("carillon radio says that its player failed, or which ones it knows", async () => {
    const failing = await carillon(["radio", "calm piano", "--duration", "10", "--player", "false"]);
    expect([failing.code, failing.stderr]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && text.includes("false failed: exit status 1"),
    );
    const absent = await carillon(["radio", "calm piano", "--duration", "10", "--player", "no-player"]);
    expect(absent.stderr).to.include("cannot start no-player: install it, or name a program with --player");
    const none = await carillon(["radio", "calm piano"], { PATH: directory });
    expect(none.stderr).to.equal(
      "carillon: no player found: install one of mpv, ffplay, pw-play, paplay, aplay, or name a program with --player\n",
    );
  });

  it("carillon generate makes a song from another song", async () => {
    const source = writeRecording(join(directory, "source.mp3"), { seconds: 2 });
    const out = join(directory, "cover.wav");
    const task = ["--task", "repaint", "--source", source, "--repaint-start", "1", "--repaint-end", "3"];
    const { code, stderr } = await carillon(["generate", "brighter", ...task, "--steps", "1", "--out", out]);
    expect(code, stderr).to.equal(0);
    expect(stderr).to.include("Reading source audio").and.include(", 3 s,");
  });

  it("carillon generate extracts each stem into its own file, with the requested format and sample rate", async () => {
    const source = writeRecording(join(directory, "stems.mp3"), { seconds: 2 });
    const task = ["--task", "extract", "--source", source, "--track", "drums", "bass", "--steps", "1"];
    const file = ["--format", "wav24", "--sample-rate", "44100", "--fade-out", "1"];
    const out = join(directory, "stem.wav");
    const { code, stdout, stderr } = await carillon(["generate", "stems", ...task, ...file, "--out", out]);
    expect(code, stderr).to.equal(0);
    const files = ["drums", "bass"].map((stem) => join(directory, `stem-${stem}.wav`));
    expect(stdout.trim().split("\n")).to.deep.equal(files);
    for (const path of files) {
      const probe = ["-v", "error", "-show_entries", "stream=codec_name,sample_rate", "-of", "csv=p=0", path];
      expect(execFileSync("ffprobe", probe, { encoding: "utf8" }).trim()).to.equal("pcm_s24le,44100");
    }
  });

  it("carillon generate renders with an adapter; scale 0 equals no adapter @slow", async () => {
    const style = writeLora(join(directory, "style"));
    const song = async (name: string, ...more: string[]) => {
      const out = join(directory, name);
      const args = ["--duration", "10", "--steps", "1", "--seed", "5", "--out", out, ...more];
      const { code, stderr } = await carillon(["generate", "a short song", ...args]);
      expect(code, stderr).to.equal(0);
      return readFileSync(out);
    };
    const base = await song("base.wav");
    expect((await song("styled.wav", "--lora", style)).equals(base)).to.equal(false);
    expect((await song("resting.wav", "--lora", style, "--lora-scale", "0")).equals(base)).to.equal(true);
    const out = join(directory, "none.wav");
    const { code, stderr } = await carillon(["generate", "x", "--lora", "absent", "--out", out]);
    expect(code).to.equal(1);
    expect(stderr).to.include("absent: there is no such file or folder");
    const scaled = await carillon(["generate", "x", "--lora-scale", "0.5", "--out", out]);
    expect(scaled.code).to.equal(1);
    expect(scaled.stderr).to.include("--lora-scale: 1 scales for 0 adapters of --lora");
  });

  it("carillon reports an empty argument in one line", async () => {
    const { code, stderr } = await carillon(["generate", "x", "--out="]);
    expect(code).to.equal(1);
    expect(stderr).to.equal("carillon: --out: the value is empty\n");
  });

  it("carillon generate reports an invalid argument and writes nothing", async () => {
    const out = join(directory, "none.mp3");
    const { code, stderr } = await carillon(["generate", "x", "--duration", "5", "--out", out]);
    expect(code).to.equal(1);
    expect(stderr).to.include("audio_duration must be from 10 to 600");
    expect(stderr).to.not.include("    at ");
    expect(existsSync(out)).to.equal(false);
  });

  it("carillon generate rejects an unwritable output file before it makes the song @slow", async () => {
    for (const [out, complaint] of [
      [directory, "is a directory"],
      [join(directory, "absent", "song.mp3"), "is not writable"],
    ] as const) {
      const { code, stderr } = await carillon(["generate", "x", "--out", out]);
      expect(code).to.equal(1);
      expect(stderr).to.include(complaint).and.not.include("Generating");
    }
  });

  for (const [variable, value] of [
    ["SVC_TMPDIR", "/proc/x"],
    ["CITY_SAVES_DIR", "/proc/x"],
    ["SVC_CONFIG_PATH", "/no/model"],
    ["SVC_CONFIG_PATH2", "no-model"],
    ["SVC_LM_MODEL_PATH", "/no/model"],
    ["SVC_TRAINING_ROOT", "/proc/x"],
    ["SVC_LM_DEVICE", "cuda:99"],
    ["SVC_OFFLOAD_TO_CPU", "perhaps"],
  ] as const) {
    it(`the server does not start with ${variable}=${value}, and prints one line that names the setting @slow`, async () => {
      const home = temporaryDirectory();
      const settings = { SVC_HOME: home, SVC_LOG_LEVEL: "warn", [variable]: value };
      const { code, stdout, stderr } = await carillon(["serve", "--port", "0"], settings);
      expect(code).to.equal(1);
      expect(stdout).to.equal("");
      expect(stderr.trim())
        .to.match(new RegExp(`^carillon: ${variable}\\b.*$`))
        .and.include(value.slice(0, 5));
    });
  }

  it("two servers run on one machine if their homes and ports differ @slow", async () => {
    const [one, two] = [temporaryDirectory(), temporaryDirectory()];
    const serve = (home: string) => ["serve", "--music", "--port", "0", "--home", home];
    const first = server(serve(one));
    const url = await servedUrl(first);
    const port = new URL(url).port;

    const sameHome = await carillon(serve(one));
    expect(sameHome.code).to.equal(1);
    expect(sameHome.stderr).to.include("is in use by another Carillon").and.include("--home");
    const samePort = await carillon(["serve", "--music", "--port", port, "--home", two]);
    expect(samePort.code).to.equal(1);
    expect(samePort.stderr).to.include(`port ${port}`).and.include("is in use").and.include("--port");

    const second = server(serve(two));
    const health = await fetch(`${await servedUrl(second)}/health`);
    expect(health.status).to.equal(200);
    for (const child of [first, second]) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
  });

  it("carillon serve --city serves only the city", async () => {
    const child = server(["serve", "--city", "--city-port", "0", "--home", temporaryDirectory()]);
    const lines: string[] = [];
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      lines.push(line);
      child.kill("SIGTERM");
    }
    expect(lines).to.have.length(1);
    expect(lines[0]).to.match(/^city on http:/);
  });

  it("carillon preprocess prepares a folder for training; --skip-existing keeps finished samples", async () => {
    const music = temporaryDirectory();
    const out = join(directory, "tensors");
    writeRecording(join(music, "one.mp3"), { seconds: 1 });
    writeFileSync(join(music, "one.caption.txt"), "a waltz");
    writeRecording(join(music, "two.wav"), { seconds: 1 });
    const args = ["preprocess", music, "--out", out, "--tag", "zydeco", "--skip-existing"];
    const first = await carillon(args);
    expect(first.code, first.stderr).to.equal(0);
    expect(first.stdout.trim()).to.equal(out);
    expect(first.stderr).to.include("two.wav has no caption and is skipped: add one in two.caption.txt");
    const files = readdirSync(out).sort();
    expect(files).to.have.length(2);
    expect(files[1]).to.equal("manifest.json");
    const writtenMs = statSync(join(out, files[0] as string)).mtimeMs;
    expect((await carillon(args)).code).to.equal(0);
    expect(statSync(join(out, files[0] as string)).mtimeMs).to.equal(writtenMs);
    expect(readdirSync(out).sort()).to.deep.equal(files);
  });

  it("carillon preprocess reports why it cannot prepare a folder", async () => {
    const out = join(directory, "none");
    const { code, stderr } = await carillon(["preprocess", join(directory, "absent"), "--out", out]);
    expect(code).to.equal(1);
    expect(stderr).to.include("Directory not found").and.not.include("    at ");
    expect(existsSync(out)).to.equal(false);
  });

  it("carillon generate leaves no file after an interruption @slow", async () => {
    const folder = temporaryDirectory();
    const child = spawnCli([
      "generate",
      "a long song",
      "--duration",
      "600",
      "--out",
      join(folder, "song.wav"),
    ]);
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      if (!stderr.includes("Generating") && text.includes("Generating")) child.kill("SIGINT");
      stderr += text;
    });
    const [code] = (await once(child, "exit")) as [number | null];
    expect(code, stderr).to.equal(130);
    expect(stderr).to.include("carillon: interrupted");
    expect(readdirSync(folder)).to.deep.equal([]);
  });

  it("carillon models lists the installed models", async () => {
    const { code, stdout } = await carillon(["models"]);
    expect(code).to.equal(0);
    expect(stdout).to.include("carillon-nano");
  });

  it("carillon doctor reports no problems on this machine", async () => {
    const { code, stdout } = await carillon(["doctor"], {
      SVC_HOME: directory,
      SVC_API_PORT: "0",
      SVC_ALLOWED_HOSTS: "host.docker.internal",
    });
    expect(code, stdout).to.equal(0);
    expect(stdout).to.match(/ callers: programs on this machine, .*127\.0\.0\.1, host\.docker\.internal/);
    expect(stdout).to.match(/^ok {3}ffmpeg: ffmpeg version/m);
    expect(stdout).to.match(/^ok {3}native core: libtorch 2\.\d+/m);
    expect(stdout).to.match(/^note models: carillon-nano.*\n {5}-> npx carillon models pull/m);
    expect(stdout).to.match(/^ok {3}songs and tasks: .* GiB free in /m);
    expect(stdout.trim().split("\n").at(-1)).to.equal("No problems found.");
  });

  it("carillon doctor recognizes a running server on its port", async () => {
    const running = createHttpServer((_request, response) => response.end('{"mode":"embedded"}'));
    const { port } = await listenLocally(running);
    const { stdout } = await carillon(["doctor"], {
      SVC_HOME: directory,
      SVC_API_PORT: "0",
      CITY_BRIDGE_PORT: String(port),
    });
    running.close();
    expect(stdout).to.match(new RegExp(`^ok {3}city port: a running Carillon answers on ${port}$`, "m"));
  });

  it("carillon doctor reports each problem and its fix", async () => {
    const taken = createServer();
    const { port } = await listenLocally(taken);
    const here = { SVC_HOME: directory, SVC_API_PORT: String(port), SVC_API_HOST: "0.0.0.0" };
    const poor = { ...here, PATH: directory, CARILLON_ADDON: join(directory, "absent.node") };
    const { code, stdout } = await carillon(["doctor"], poor);
    taken.close();
    expect(code).to.equal(1);
    expect(stdout).to.match(/^BAD {2}ffmpeg: .*\n {5}-> install it/m);
    expect(stdout).to.match(
      /^BAD {2}native core: .*absent\.node does not exist\n {5}-> Run "npm run setup"/m,
    );
    expect(stdout).to.match(/^note music port: \d+ on 0\.0\.0\.0 is in use.*\n {5}-> .*SVC_API_PORT/m);
    expect(stdout).to.match(/^BAD {2}callers: SVC_API_KEY is empty.*\n {5}-> set SVC_API_KEY/m);
    expect(stdout).to.include("3 of ");
    const unread = await carillon(["doctor"], { ...here, SVC_QUEUE_MAXSIZE: "many" });
    expect(unread.code).to.equal(1);
    expect(unread.stdout).to.match(/^BAD {2}settings: SVC_QUEUE_MAXSIZE.*\n {5}-> set SVC_QUEUE_MAXSIZE/m);
  });

  it("carillon serve names an invalid setting", async () => {
    const { code, stderr } = await carillon(["serve", "--port", "many"]);
    expect(code).to.equal(1);
    expect(stderr).to.include("SVC_API_PORT").and.include("many");
  });

  it("a second server cannot use the first server's directory or port; the first server's task continues @slow", async () => {
    const directory = temporaryDirectory();
    const server = await ServedProcess.startWithCity(directory, { OMP_NUM_THREADS: "1" });
    const running = await server.client.submit(longSong);
    await server.client.untilStarted(running);
    const saves = { CITY_SAVES_DIR: join(directory, "saves") };
    const tasks = { SVC_TMPDIR: directory, CITY_SAVES_DIR: join(directory, "other saves") };
    const elsewhere = {
      SVC_TMPDIR: join(directory, "other"),
      CITY_SAVES_DIR: join(directory, "other saves"),
    };
    for (const [settings, port, complaint] of [
      [saves, "0", "set CITY_SAVES_DIR to another directory"],
      [tasks, "0", "set SVC_TMPDIR to another directory"],
      [elsewhere, new URL(server.client.url).port, "SVC_API_PORT"],
    ] as const) {
      const second = await carillon(["serve", "--port", port], settings);
      expect(second.code).to.equal(1);
      expect(second.stderr).to.include(complaint);
    }
    expect((await server.client.get("/v1/stats")).body.data.jobs).to.include({ running: 1, failed: 0 });
    await server.client.post("/cancel_task", { task_id: running });
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
