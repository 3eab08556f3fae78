import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FolderScan, scanFolder } from "../../../src/music/dataset/scan.js";
import { RequestError } from "../../../src/music/errors.js";
import type { ScanRequest } from "../../../src/music/request/data-set-bodies.js";
import { PermittedRoot } from "../../../src/music/storage/permitted-root.js";
import { writeRecording } from "../audio/recordings.js";
import { temporaryDirectory } from "../tasks.js";

describe("scanning a folder", () => {
  let root: string;

  beforeEach(() => {
    root = temporaryDirectory();
  });

  const scan = (change: Partial<ScanRequest> = {}): Promise<FolderScan> =>
    scanFolder(
      {
        directory: root,
        name: "set",
        customTag: "tag",
        tagPosition: "append",
        allInstrumental: true,
        ...change,
      },
      new PermittedRoot(root),
    );
  const refusal = async (change: Partial<ScanRequest>) => {
    const failure = await scan(change).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(RequestError);
    return (failure as RequestError).detail;
  };

  it("finds audio of every format in all folders, with its descriptions", async () => {
    mkdirSync(join(root, "album"));
    writeRecording(join(root, "b.mp3"), { seconds: 2.5 });
    writeRecording(join(root, "album/a.m4a"), { seconds: 1 });
    writeRecording(join(root, "c.FLAC".toLowerCase()), { seconds: 1 });
    writeFileSync(join(root, "b.caption.txt"), "a waltz");
    writeFileSync(join(root, "b.lyrics.txt"), "la la");
    writeFileSync(join(root, "songs.csv"), "File,BPM,Key,Caption\na.m4a,90,C major,a march\n");
    writeFileSync(join(root, "cover.jpg"), "no audio");

    const { dataSet, warnings } = await scan();
    expect(warnings).to.deep.equal([]);
    expect(dataSet).to.include({
      name: "set",
      customTag: "tag",
      tagPosition: "append",
      allInstrumental: true,
    });
    const [march, waltz, plain] = dataSet.samples;
    expect(dataSet.samples).to.have.length(3);
    expect(march).to.include({
      filename: "a.m4a",
      caption: "a march",
      bpm: 90,
      keyScale: "C major",
      labeled: true,
    });
    expect(waltz).to.include({
      audioPath: join(root, "b.mp3"),
      caption: "a waltz",
      lyrics: "la la",
      rawLyrics: "la la",
      durationSeconds: 2,
      isInstrumental: false,
      customTag: "tag",
      labeled: true,
    });
    expect(plain).to.include({ caption: "", lyrics: "[Instrumental]", isInstrumental: true, labeled: false });
  });

  it("gives samples the same ids in every scan", async () => {
    writeRecording(join(root, "a.wav"), { seconds: 1 });
    const ids = async () => (await scan()).dataSet.samples.map(({ id }) => id);
    expect(await ids()).to.deep.equal(await ids());
  });

  it("skips files without audio and links out of the root with a warning", async () => {
    const outside = temporaryDirectory();
    writeRecording(join(outside, "theirs.wav"), { seconds: 1 });
    writeRecording(join(root, "a.wav"), { seconds: 1 });
    symlinkSync(join(outside, "theirs.wav"), join(root, "link.wav"));
    writeFileSync(join(root, "song.mp3"), "this is a text file");
    writeFileSync(join(root, "void.ogg"), "");
    const { dataSet, warnings } = await scan();
    expect(dataSet.samples.map(({ filename }) => filename)).to.deep.equal(["a.wav"]);
    expect(warnings).to.have.length(3);
    expect(warnings.find((line) => line.includes("link.wav"))).to.contain("is outside");
    expect(warnings.find((line) => line.includes("song.mp3"))).to.contain("no decodable audio");
  });

  it("ignores a link to a description outside the root", async () => {
    const outside = temporaryDirectory();
    writeFileSync(join(outside, "secret.txt"), "secret");
    writeRecording(join(root, "a.wav"), { seconds: 1 });
    symlinkSync(join(outside, "secret.txt"), join(root, "a.txt"));
    symlinkSync(join(outside, "secret.txt"), join(root, "b.csv"));
    const { dataSet, warnings } = await scan();
    expect(dataSet.samples[0]).to.include({ rawLyrics: "", isInstrumental: true });
    expect(warnings.every((line) => line.includes("is outside"))).to.equal(true);
  });

  it("rejects a missing or empty folder, one without audio, and one outside the root", async () => {
    expect(await refusal({ directory: "absent" })).to.equal(
      "Directory not found: absent (relative paths start in SVC_TRAINING_ROOT on the server)",
    );
    writeFileSync(join(root, "file"), "");
    expect(await refusal({ directory: "file" })).to.equal("Not a directory: file");
    expect(await refusal({})).to.match(/^No audio files found in .*; supported: \.flac, /);
    writeFileSync(join(root, "song.mp3"), "text");
    expect(await refusal({})).to.match(/^No usable audio in .*: song\.mp3 contains no decodable audio/);
    expect(await refusal({ directory: ".." })).to.contain("Rejected unsafe path");
  });
});
