import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type AudioInputOptions, AudioInputs, ownFiles } from "../../../src/music/audio/audio-inputs.js";
import { HttpError } from "../../../src/music/errors.js";
import type { Fields } from "../../../src/music/request/json.js";
import type { GenerationRequest } from "../../../src/music/request/schema.js";
import { Shelf } from "../../../src/music/storage/shelf.js";
import { parse } from "../request/request-parsing.js";
import { temporaryDirectory } from "../tasks.js";
import { runFfmpeg, writeRecording, writeSilence } from "./recordings.js";

describe("recordings of tasks", () => {
  const directory = temporaryDirectory();
  const at = (...names: string[]): string => join(directory, ...names);
  const limits: AudioInputOptions = {
    roots: [at("music")],
    songs: new Shelf(at("songs"), null, "audio/"),
    uploads: new Shelf(at("uploads"), null, "uploads/"),
    maxSeconds: 20,
  };
  const caller = { address: "127.0.0.1", signal: new AbortController().signal };
  const anywhere: AudioInputOptions = { ...limits, roots: null };

  before(() => {
    for (const name of ["music", "music_evil", "songs", "uploads", "outside"]) mkdirSync(at(name));
    mkdirSync(at("songs", "nested"));
    for (const folder of ["music", "music_evil", "songs", "uploads", "outside"]) {
      writeRecording(at(folder, "a b.wav"), { seconds: 3 });
    }
    symlinkSync(at("outside", "a b.wav"), at("music", "out.wav"));
    symlinkSync(at("outside"), at("music", "folder out"));
    symlinkSync(at("music", "a b.wav"), at("outside", "in.wav"));
    symlinkSync(at("music"), at("another name"));
    writeFileSync(at("music", "song.mp3"), "root:x:0:0 top secret\n".repeat(99));
  });

  const cover = (path: string, more: Fields = {}): GenerationRequest =>
    parse({ task_type: "cover", src_audio_path: path, ...more });

  async function refusalOf(request: GenerationRequest, options = limits): Promise<string> {
    const failure = await new AudioInputs(options).admit(request, caller).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(HttpError).with.property("status", 400);
    const { detail } = failure as HttpError;
    expect(detail).to.not.include("secret");
    return detail;
  }

  const accepted: [what: string, path: () => string, real: () => string][] = [
    ["an absolute path in a root", () => at("music", "a b.wav"), () => at("music", "a b.wav")],
    ["one through a link to a root", () => at("another name", "a b.wav"), () => at("music", "a b.wav")],
    ["a link into a root", () => at("outside", "in.wav"), () => at("music", "a b.wav")],
    [
      "one that goes up and comes back",
      () => at("outside", "..", "music", "a b.wav"),
      () => at("music", "a b.wav"),
    ],
    ["a finished song", () => at("songs", "a b.wav"), () => at("songs", "a b.wav")],
    ["an upload", () => at("uploads", "a b.wav"), () => at("uploads", "a b.wav")],
    ["a name in the folder of songs", () => "a b.wav", () => at("songs", "a b.wav")],
    ["a name by a detour", () => "nested/../a b.wav", () => at("songs", "a b.wav")],
    [
      "the URL of a result",
      () => `/v1/audio?path=${encodeURIComponent(at("songs", "a b.wav"))}`,
      () => at("songs", "a b.wav"),
    ],
    [
      "the whole URL of a result, with a key",
      () =>
        `http://127.0.0.1:8001/v1/audio?ai_token=k&path=${encodeURIComponent(at("songs", "a b.wav"))}#t=1`,
      () => at("songs", "a b.wav"),
    ],
    ["the URL of a relative result", () => "/v1/audio?path=a%20b.wav", () => at("songs", "a b.wav")],
  ];
  for (const [what, path, real] of accepted) {
    it(`may be named by ${what}`, async () => {
      const { sourceAudio } = await new AudioInputs(limits).admit(cover(path()), caller);
      expect(sourceAudio).to.deep.equal({ path: real(), isUpload: false });
    });
  }

  const outside = /^src_audio_path lies outside .*SVC_AUDIO_ROOTS$/;
  const refused: [what: string, path: () => string, detail: RegExp][] = [
    ["a path outside the roots", () => at("outside", "a b.wav"), outside],
    ["a sibling whose name begins alike", () => at("music_evil", "a b.wav"), outside],
    ["a link out of a root", () => at("music", "out.wav"), outside],
    ["a linked folder out of a root", () => at("music", "folder out", "a b.wav"), outside],
    ["a way out of a root", () => at("music", "..", "outside", "a b.wav"), outside],
    ["a relative way out", () => "../outside/a b.wav", outside],
    ["what is missing outside", () => "/no/such/file.wav", outside],
    ["a result's URL that points elsewhere", () => "/v1/audio?path=%2Fetc%2Fpasswd", outside],
    ["the system's own files", () => "/etc/passwd", outside],
    ["what is missing", () => at("music", "absent.wav"), /names no file that exists$/],
    ["a folder", () => at("songs", "nested"), /names no regular file$/],
    ["a NUL character", () => "a b.wav\0.mp3", /NUL/],
    [
      "a URL elsewhere",
      () => "https://example.org/a.wav",
      /must be an absolute path on the server, .* not a URL/,
    ],
    ["the URL of a file", () => "file:///tmp/a.wav", /not a URL/],
    ["a path from home", () => "~/a.wav", /not a path that starts with ~/],
    ["a broken URL", () => "/v1/audio?path=%zz", /not a URL/],
    ["text in a file of music", () => at("music", "song.mp3"), /^src_audio holds no audio/],
  ];
  for (const [what, path, detail] of refused) {
    it(`may not be named by ${what}`, async () => {
      expect(await refusalOf(cover(path()))).to.match(detail);
      const reference = parse({ reference_audio_path: path() });
      expect(await refusalOf(reference)).to.match(
        new RegExp(detail.source.replace("src_audio", "reference_audio")),
      );
    });
  }

  it("lie anywhere where no roots bind, but are files of sound all the same", async () => {
    const inputs = new AudioInputs(anywhere);
    expect((await inputs.admit(cover(at("outside", "a b.wav")), caller)).sourceAudio?.path).to.equal(
      at("outside", "a b.wav"),
    );
    expect(await refusalOf(cover("/etc/passwd"), anywhere)).to.match(/^src_audio holds no audio/);
    expect(await refusalOf(cover("/dev/zero"), anywhere)).to.match(/names no regular file$/);
    expect(await refusalOf(cover("/no/such/file.wav"), anywhere)).to.match(/names no file that exists$/);
  });

  it("are checked again before they are read", async () => {
    const inputs = new AudioInputs(limits);
    const path = writeRecording(at("music", "b.wav"), { seconds: 1 });
    const admitted = await inputs.admit(cover(path), caller);
    renameSync(path, at("music", "moved.wav"));
    const gone = await inputs.locate(admitted).catch((error: unknown) => error);
    expect((gone as Error).message).to.match(/names no file that exists$/);
    symlinkSync(at("outside", "a b.wav"), path);
    const swapped = await inputs.locate(admitted).catch((error: unknown) => error);
    expect((swapped as Error).message).to.match(outside);
  });

  it("that were uploaded are taken as they are, and belong to their task", async () => {
    const uploads = {
      sourceAudio: { path: at("outside", "a b.wav") },
      referenceAudio: { path: at("uploads", "a b.wav") },
    };
    const request = parse({ task_type: "cover" }, { uploads });
    expect(ownFiles(await new AudioInputs(limits).admit(request, caller))).to.deep.equal([
      at("outside", "a b.wav"),
      at("uploads", "a b.wav"),
    ]);
    expect(ownFiles(cover("a b.wav"))).to.deep.equal([]);
  });

  it("may last as long as the limit says, whichever they are", async () => {
    writeSilence(at("music", "long.flac"), 21);
    expect(await refusalOf(cover(at("music", "long.flac")))).to.equal(
      "src_audio lasts longer than 20 seconds",
    );
    const reference = parse({ reference_audio_path: at("music", "long.flac") });
    expect(await refusalOf(reference)).to.equal("reference_audio lasts longer than 20 seconds");
    rmSync(at("music", "long.flac"));
  });

  it("hold a timbre where one is to be taken, and a latent frame where they are worked on", async () => {
    const inputs = new AudioInputs(limits);
    const silence = writeSilence(at("music", "silence.flac"), 3);
    expect(await refusalOf(parse({ reference_audio_path: silence }))).to.match(/^reference_audio is silent/);
    expect((await inputs.admit(cover(silence), caller)).sourceAudio?.path).to.equal(silence);
    const quiet = ["-f", "lavfi", "-i", "aevalsrc=0|2e-6:s=48000:d=1", "-c:a", "pcm_f32le"];
    runFfmpeg([...quiet, at("music", "quiet.wav")]);
    await inputs.admit(parse({ reference_audio_path: at("music", "quiet.wav") }), caller);

    const click = writeRecording(at("music", "click.wav"), { seconds: 0.03 });
    expect(await refusalOf(cover(click))).to.equal("src_audio lasts 0.030 seconds; 0.04 are the least");
    await inputs.admit(cover(writeRecording(at("music", "frame.wav"), { seconds: 0.04 })), caller);
    await inputs.admit(parse({ reference_audio_path: click }), caller);
  });

  describe("with a window", () => {
    const window = (repainting_start: number, repainting_end: number | null, task_type = "repaint") =>
      cover(at("songs", "a b.wav"), { task_type, repainting_start, repainting_end });

    for (const [start, end] of [
      [0, null],
      [1, 2],
      [-4, 2],
      [2, 9],
      [-4, 9],
      [3, 9],
      [3.02, 9],
      [-4, null],
    ] as const) {
      it(`take ${start} to ${end} of three seconds`, async () => {
        await new AudioInputs(limits).admit(window(start, end), caller);
      });
    }

    it("refuse one that leaves a gap, nothing, or too long a song", async () => {
      expect(await refusalOf(window(3.5, 9))).to.match(
        /^repainting_start must not lie beyond .* 3\.00 seconds/,
      );
      expect(await refusalOf(window(7, null, "lego"))).to.match(/^repainting_start must not lie beyond/);
      expect(await refusalOf(window(3, null))).to.match(/leaves nothing/);
      expect(await refusalOf(window(0, 601))).to.match(/make a song of 601\.00 seconds/);
      expect(await refusalOf(window(-300, 400))).to.match(/make a song of 700\.00 seconds/);
    });

    it("matter to repaint and lego only", async () => {
      for (const task_type of ["cover", "extract", "complete"]) {
        await new AudioInputs(limits).admit(window(7, 9, task_type), caller);
      }
    });
  });
});
