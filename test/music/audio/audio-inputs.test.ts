import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type AudioInputOptions, AudioInputs, uploadPathsOf } from "../../../src/music/audio/audio-inputs.js";
import { NO_UPLOADS } from "../../../src/music/audio/uploads.js";
import { HttpError } from "../../../src/music/errors.js";
import type { GenerationRequest } from "../../../src/music/request/generation-request.js";
import { FileStorage } from "../../../src/music/storage/file-storage.js";
import type { Fields } from "../../../src/parameters.js";
import { parse } from "../request/request-parsing.js";
import { temporaryDirectory } from "../tasks.js";
import { runFfmpeg, writeRecording, writeSilence } from "./recordings.js";

describe("input recordings of tasks", () => {
  const directory = temporaryDirectory();
  const at = (...names: string[]): string => join(directory, ...names);
  const limits: AudioInputOptions = {
    roots: [at("music")],
    discard: async () => {},
    songs: new FileStorage(at("songs"), null, "audio/"),
    uploads: new FileStorage(at("uploads"), null, "uploads/"),
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
    ["a path through a link to a root", () => at("another name", "a b.wav"), () => at("music", "a b.wav")],
    ["a link into a root", () => at("outside", "in.wav"), () => at("music", "a b.wav")],
    [
      "a path with .. that stays in a root",
      () => at("outside", "..", "music", "a b.wav"),
      () => at("music", "a b.wav"),
    ],
    ["a finished song", () => at("songs", "a b.wav"), () => at("songs", "a b.wav")],
    ["an upload", () => at("uploads", "a b.wav"), () => at("uploads", "a b.wav")],
    ["a name in the folder of songs", () => "a b.wav", () => at("songs", "a b.wav")],
    ["a relative path with ..", () => "nested/../a b.wav", () => at("songs", "a b.wav")],
    [
      "the URL of a result",
      () => `/v1/audio?path=${encodeURIComponent(at("songs", "a b.wav"))}`,
      () => at("songs", "a b.wav"),
    ],
    [
      "a complete result URL with a key",
      () =>
        `http://127.0.0.1:8001/v1/audio?ai_token=k&path=${encodeURIComponent(at("songs", "a b.wav"))}#t=1`,
      () => at("songs", "a b.wav"),
    ],
    ["a result URL with a relative path", () => "/v1/audio?path=a%20b.wav", () => at("songs", "a b.wav")],
  ];
  for (const [what, path, real] of accepted) {
    it(`accepts as a source: ${what}`, async () => {
      const { source } = await new AudioInputs(limits).admit(cover(path()), caller);
      expect(source).to.deep.equal({ kind: "sourceAudio", path: real(), isUpload: false });
    });
  }

  const outside = /^src_audio_path is outside .*SVC_AUDIO_ROOTS\)$/;
  const refused: [what: string, path: () => string, detail: RegExp][] = [
    ["a path outside the roots", () => at("outside", "a b.wav"), outside],
    ["a sibling with the same prefix", () => at("music_evil", "a b.wav"), outside],
    ["a link out of a root", () => at("music", "out.wav"), outside],
    ["a linked folder out of a root", () => at("music", "folder out", "a b.wav"), outside],
    ["a path with .. out of a root", () => at("music", "..", "outside", "a b.wav"), outside],
    ["a relative path with .. out of the folder", () => "../outside/a b.wav", outside],
    ["a missing file outside the roots", () => "/no/such/file.wav", outside],
    ["a result URL with a path outside", () => "/v1/audio?path=%2Fetc%2Fpasswd", outside],
    ["the system's own files", () => "/etc/passwd", outside],
    [
      "a missing file",
      () => at("music", "absent.wav"),
      /names a path that does not exist on the server: .* upload it as src_audio$/,
    ],
    [
      "a relative path, which starts in the folder of songs",
      () => "take 1.wav",
      /does not exist on the server, where relative paths start in the folder of songs: .* upload it as src_audio$/,
    ],
    [
      "a Windows path",
      () => "C:\\music\\a.wav",
      /on the server, where relative paths start in the folder of songs/,
    ],
    ["a folder", () => at("songs", "nested"), /names a path that is a directory$/],
    ["a NUL character", () => "a b.wav\0.mp3", /NUL/],
    [
      "a URL of another server",
      () => "https://example.org/a.wav",
      /must be an absolute path on the server, .* not a URL/,
    ],
    ["a file URL", () => "file:///tmp/a.wav", /not a URL/],
    ["a path that starts with ~", () => "~/a.wav", /not a path that starts with ~/],
    ["a broken URL", () => "/v1/audio?path=%zz", /not a valid result URL/],
    ["text in a file of music", () => at("music", "song.mp3"), /^src_audio contains no decodable audio/],
  ];
  for (const [what, path, detail] of refused) {
    it(`rejects as a source and as a reference: ${what}`, async () => {
      expect(await refusalOf(cover(path()))).to.match(detail);
      const reference = parse({ reference_audio_path: path() });
      expect(await refusalOf(reference)).to.match(
        new RegExp(detail.source.replace("src_audio", "reference_audio")),
      );
    });
  }

  it("accepts audio files in any folder if no root is set, and rejects other files", async () => {
    const inputs = new AudioInputs(anywhere);
    expect((await inputs.admit(cover(at("outside", "a b.wav")), caller)).source?.path).to.equal(
      at("outside", "a b.wav"),
    );
    expect(await refusalOf(cover("/etc/passwd"), anywhere)).to.match(
      /^src_audio contains no decodable audio/,
    );
    expect(await refusalOf(cover("/dev/zero"), anywhere)).to.match(
      /names a path that is not a regular file$/,
    );
    expect(await refusalOf(cover("/no/such/file.wav"), anywhere)).to.match(
      /names a path that does not exist on the server/,
    );
  });

  it("checks an accepted path again before a job reads the file", async () => {
    const inputs = new AudioInputs(limits);
    const path = writeRecording(at("music", "b.wav"), { seconds: 1 });
    const admitted = await inputs.admit(cover(path), caller);
    renameSync(path, at("music", "moved.wav"));
    const gone = await inputs.locate(admitted, caller.signal).catch((error: unknown) => error);
    expect((gone as Error).message).to.match(/names a path that does not exist on the server/);
    symlinkSync(at("outside", "a b.wav"), path);
    const swapped = await inputs.locate(admitted, caller.signal).catch((error: unknown) => error);
    expect((swapped as Error).message).to.match(outside);
  });

  it("accepts uploads without a path check, and lists them as uploads of their task", async () => {
    const uploads = {
      ...NO_UPLOADS,
      sourceAudio: { path: at("outside", "a b.wav") },
      referenceAudio: { path: at("uploads", "a b.wav") },
    };
    const request = parse({ task_type: "cover" }, { uploads });
    expect(uploadPathsOf(await new AudioInputs(limits).admit(request, caller))).to.deep.equal([
      at("outside", "a b.wav"),
      at("uploads", "a b.wav"),
    ]);
    expect(uploadPathsOf(cover("a b.wav"))).to.deep.equal([]);
  });

  it("rejects recordings over the maximum length", async () => {
    writeSilence(at("music", "long.flac"), 21);
    expect(await refusalOf(cover(at("music", "long.flac")))).to.equal(
      "src_audio lasts longer than 20 seconds",
    );
    const reference = parse({ reference_audio_path: at("music", "long.flac") });
    expect(await refusalOf(reference)).to.equal("reference_audio lasts longer than 20 seconds");
    rmSync(at("music", "long.flac"));
  });

  it("rejects a silent reference, and a source that is shorter than a latent frame", async () => {
    const inputs = new AudioInputs(limits);
    const silence = writeSilence(at("music", "silence.flac"), 3);
    expect(await refusalOf(parse({ reference_audio_path: silence }))).to.match(/^reference_audio is silent/);
    expect((await inputs.admit(cover(silence), caller)).source?.path).to.equal(silence);
    const quiet = ["-f", "lavfi", "-i", "aevalsrc=0|2e-6:s=48000:d=1", "-c:a", "pcm_f32le"];
    runFfmpeg([...quiet, at("music", "quiet.wav")]);
    await inputs.admit(parse({ reference_audio_path: at("music", "quiet.wav") }), caller);

    const click = writeRecording(at("music", "click.wav"), { seconds: 0.03 });
    expect(await refusalOf(cover(click))).to.equal("src_audio lasts 0.030 seconds; the minimum is 0.04");
    await inputs.admit(cover(writeRecording(at("music", "frame.wav"), { seconds: 0.04 })), caller);
    await inputs.admit(parse({ reference_audio_path: click }), caller);
  });

  describe("validation of repaint windows", () => {
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
      it(`accepts a repaint window from ${start} to ${end ?? "the end"} in a source of three seconds`, async () => {
        await new AudioInputs(limits).admit(window(start, end), caller);
      });
    }

    it("rejects a repaint window outside the source, or one that makes the song too long", async () => {
      expect(await refusalOf(window(3.5, 9))).to.match(
        /^repainting_start must not be after the end of .* 3\.00 seconds/,
      );
      expect(await refusalOf(window(7, null, "lego"))).to.match(
        /^repainting_start must not be after the end of/,
      );
      expect(await refusalOf(window(3, null))).to.match(/is after the end of/);
      expect(await refusalOf(window(0, 601))).to.match(/make a song of 601\.00 seconds/);
      expect(await refusalOf(window(-300, 400))).to.match(/make a song of 700\.00 seconds/);
    });

    it("accepts any repaint window for tasks that ignore it: cover, extract and complete", async () => {
      for (const task_type of ["cover", "extract", "complete"]) {
        await new AudioInputs(limits).admit(window(7, 9, task_type), caller);
      }
    });
  });
});
