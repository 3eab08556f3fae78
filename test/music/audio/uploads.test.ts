import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { expect } from "chai";
import fc from "fast-check";
import {
  removeOrphanUploads,
  storeUpload,
  uploadKind,
  uploadPath,
} from "../../../src/music/audio/uploads.js";
import { temporaryDirectory } from "../tasks.js";

describe("storage of uploads", () => {
  let directory: string;
  beforeEach(() => {
    directory = temporaryDirectory();
  });

  it("uploads are accepted in four form fields", () => {
    expect(
      ["ref_audio", "reference_audio", "ctx_audio", "src_audio", "file", "__proto__"].map(uploadKind),
    ).to.deep.equal(["referenceAudio", "referenceAudio", "sourceAudio", "sourceAudio", null, null]);
  });

  it("uploads are stored in the uploads directory, whatever the client's file name", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.constantFrom("../../x.exe", "a/../../b.wav", "..", "\0.wav")),
        (name) => {
          const path = uploadPath(directory, "sourceAudio", name);
          expect(dirname(path)).to.equal(directory);
          expect(path.slice(directory.length + 1)).to.match(/^ctx_audio_[0-9a-f-]{36}(\.[A-Za-z0-9]{1,8})?$/);
        },
      ),
    );
    expect(uploadPath(directory, "referenceAudio", "My Song.FLAC")).to.match(/\.FLAC$/);
  });

  it("uploads are written completely", async () => {
    const path = join(directory, "new", "ctx_audio_1.wav");
    const bytes = await storeUpload(Readable.from([Buffer.from("ab"), Buffer.from("c")]), path);
    expect(bytes).to.equal(3);
    expect(await readFile(path, "utf8")).to.equal("abc");
  });

  it("an upload never overwrites a file", async () => {
    const path = join(directory, "ctx_audio_1.wav");
    await writeFile(path, "old");
    const failure = await storeUpload(Readable.from([Buffer.from("new")]), path).catch((error) => error);
    expect(failure.code).to.equal("EEXIST");
    expect(await readFile(path, "utf8")).to.equal("old");
  });

  it("uploads of an earlier process are deleted unless a task needs them; other files are kept", async () => {
    await mkdir(join(directory, "keep"));
    for (const name of ["ref_audio_1.wav", "ctx_audio_2", "ctx_audio_3.mp3", "song.mp3"])
      await writeFile(join(directory, name), "");
    await removeOrphanUploads(directory, (path) => path === join(directory, "ctx_audio_3.mp3"));
    expect((await readdir(directory)).sort()).to.deep.equal(["ctx_audio_3.mp3", "keep", "song.mp3"]);
    await removeOrphanUploads(join(directory, "absent"), () => false);
  });
});
