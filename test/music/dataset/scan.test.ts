import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { type FolderScan, scanFolder } from "../../../src/music/dataset/scan.js";
import { RequestError } from "../../../src/music/errors.js";
import type { ScanRequest } from "../../../src/music/request/training-bodies.js";
import { PermittedRoot } from "../../../src/music/storage/permitted-root.js";
import { encoded } from "../../encodings.js";
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
        custom_tag: "tag",
        tag_position: "append",
        all_instrumental: true,
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
      custom_tag: "tag",
      tag_position: "append",
      all_instrumental: true,
    });
    const [march, waltz, plain] = dataSet.samples;
    expect(dataSet.samples).to.have.length(3);
    expect(march).to.include({
      filename: "a.m4a",
      caption: "a march",
      bpm: 90,
      keyscale: "C major",
      labeled: true,
    });
    expect(waltz).to.include({
      audio_path: join(root, "b.mp3"),
      caption: "a waltz",
      lyrics: "la la",
      raw_lyrics: "la la",
      duration: 2,
      is_instrumental: false,
      custom_tag: "tag",
      labeled: true,
    });
    expect(plain).to.include({
      caption: "",
      lyrics: "[Instrumental]",
      is_instrumental: true,
      labeled: false,
    });
  });

  it("makes a song with lyrics of any file no instrumental, and one without words an instrumental", async () => {
    const songs = {
      "json.json": '{"caption": "a waltz", "lyrics": "la la", "language": "de"}',
      "ace1_lyrics.txt": "la la",
      "tag.json": '{"lyrics": "[Instrumental]"}',
      "silent.json": '{"lyrics": "la la", "is_instrumental": true, "custom_tag": "own"}',
      "sung.json": '{"is_instrumental": false, "genre": "polka"}',
    };
    for (const [name, content] of Object.entries(songs)) {
      writeFileSync(join(root, name), content);
      writeRecording(join(root, name.replace(/(_lyrics)?\.\w+$/, ".wav")), { seconds: 1 });
    }
    const { samples } = (await scan()).dataSet;
    const sample = (name: string) => samples.find(({ filename }) => filename === `${name}.wav`);
    expect(sample("json")).to.include({ is_instrumental: false, lyrics: "la la", language: "de" });
    expect(sample("ace1")).to.include({ is_instrumental: false, raw_lyrics: "la la" });
    expect(sample("tag")).to.include({ is_instrumental: true, raw_lyrics: "" });
    expect(sample("silent")).to.include({ is_instrumental: true, custom_tag: "own" });
    expect(sample("sung")).to.include({
      is_instrumental: false,
      caption: "polka",
      genre: "polka",
      labeled: true,
    });
  });

  it("reads sidecar files of every encoding with a byte order mark; names files in other encodings", async () => {
    const caption = encoded("Frühlingswalzer\r\n");
    for (const [name, bytes] of Object.entries(caption)) {
      writeRecording(join(root, `${name}.wav`), { seconds: 1 });
      writeFileSync(join(root, `${name}.caption.txt`), bytes);
      writeFileSync(join(root, `${name}.json`), encoded('{"bpm": 90}')[name as keyof typeof caption]);
    }
    writeFileSync(join(root, "keys.csv"), encoded("File;Key\r\nutf8.wav;C major\r\n").utf16le);
    writeRecording(join(root, "latin.wav"), { seconds: 1 });
    writeFileSync(join(root, "latin.caption.txt"), Buffer.from("Frühling", "latin1"));
    const { dataSet, warnings } = await scan();
    const [latin, ...others] = dataSet.samples;
    expect(latin).to.include({ filename: "latin.wav", caption: "", labeled: false });
    for (const sample of others) expect(sample).to.include({ caption: "Frühlingswalzer", bpm: 90 });
    expect(others.map(({ keyscale }) => keyscale)).to.deep.equal(["", "", "C major"]);
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.match(/latin\.caption\.txt is not text in UTF-8 or UTF-16: save it as UTF-8$/);
  });

  it("finds sidecar files and table rows whose names differ in letter case or the form of accents", async () => {
    writeRecording(join(root, "song.wav"), { seconds: 1 });
    renameSync(join(root, "song.wav"), join(root, `${"Café".normalize("NFD")}.WAV`));
    writeFileSync(join(root, `${"café".normalize("NFC")}.TXT`), "la la");
    writeFileSync(join(root, "SONGS.CSV"), `File,Caption\n${"café".normalize("NFC")}.wav,a waltz\n`);
    const { dataSet, warnings } = await scan();
    expect(dataSet.samples[0]).to.include({ raw_lyrics: "la la", caption: "a waltz" });
    expect(warnings).to.deep.equal([]);
  });

  it("matches rows of tables by path, else by name, and names rows without a recording", async () => {
    for (const album of ["one", "two"]) {
      mkdirSync(join(root, album));
      writeRecording(join(root, album, "01.wav"), { seconds: 1 });
    }
    writeRecording(join(root, "two/last.wav"), { seconds: 1 });
    const rows = ["one/01.wav,first", "two\\01.wav,second", "C:\\music\\last.wav,last", "gone.wav,none"];
    writeFileSync(join(root, "songs.csv"), ["File,Caption", ...rows].join("\n"));
    writeFileSync(join(root, "two/metadata.jsonl"), '{"file_name": "01.wav", "bpm": 90}\n');
    const { dataSet, warnings } = await scan();
    expect(dataSet.samples.map(({ caption, bpm }) => [caption, bpm])).to.deep.equal([
      ["first", null],
      ["second", 90],
      ["last", null],
    ]);
    expect(warnings).to.deep.equal(["songs.csv describes recordings that are not in its folder: gone.wav"]);
  });

  it("reads links to files, and names links to folders", async () => {
    mkdirSync(join(root, "album"));
    writeRecording(join(root, "album/a.wav"), { seconds: 1 });
    symlinkSync(join(root, "album/a.wav"), join(root, "b.wav"));
    symlinkSync(join(root, "album"), join(root, "other"));
    const { dataSet, warnings } = await scan();
    expect(dataSet.samples.map(({ filename }) => filename)).to.deep.equal(["a.wav", "b.wav"]);
    expect(warnings).to.deep.equal(["other is a link to a folder and was not searched"]);
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
    expect(dataSet.samples[0]).to.include({ raw_lyrics: "", is_instrumental: true });
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
