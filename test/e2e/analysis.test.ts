import { join } from "node:path";
import { expect } from "chai";
import { uploadOf, writeRecording } from "../music/audio/recordings.js";
import { type FinishedTask, serverForAll } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";

const SECONDS = 3;
const CODES = new RegExp(`^(<\\|audio_code_\\d+\\|>){${5 * SECONDS}}$`);

describe("analysis tasks, which make no song", () => {
  const directory = temporaryDirectory();
  const recording = writeRecording(join(directory, "recording.flac"), { seconds: SECONDS });
  const { client } = serverForAll();

  /** Returns the only record of a task after checking the fields that every record has. */
  function recordOf({ item, records }: FinishedTask): Record<string, unknown> {
    expect(item.status, item.error).to.equal(1);
    expect(records).to.have.length(1);
    expect(records[0]).to.include({
      file: "",
      wave: "",
      status: 1,
      progress: 1,
      stage: "succeeded",
      error: null,
    });
    return records[0] as unknown as Record<string, unknown>;
  }

  const analyse = async (parameters: object) =>
    recordOf(await client.finished(await client.submit({ prompt: "calm piano", ...parameters })));

  it("extract_codes_only returns audio codes that a cover task accepts as its source", async () => {
    const byUpload = await analyse({ extract_codes_only: true, src_audio: uploadOf(recording) });
    expect(byUpload).to.include({
      status_message: "Audio Codes Extraction Success",
      first_audio_path: null,
      lm_model: "",
      dit_model: "carillon-nano",
    });
    expect(byUpload.audio_codes).to.match(CODES);
    expect(byUpload.metas).to.deep.equal({});
    expect([byUpload.audio_paths, byUpload.raw_audio_paths]).to.deep.equal([[], []]);
    const all = { extractCodesOnly: true, full_analysis_only: true, analysis_only: true };
    expect((await analyse({ ...all, src_audio_path: recording })).audio_codes).to.equal(byUpload.audio_codes);
    const cover = { task_type: "cover", use_audio_codes: true, audio_code_string: byUpload.audio_codes };
    const song = await client.makeOne({ ...cover, inference_steps: 1 });
    expect(song.metas.duration).to.equal(SECONDS);
  });

  it("full_analysis_only describes a recording with its real duration", async () => {
    const record = await analyse({ full_analysis_only: true, src_audio_path: recording });
    expect(record).to.include({
      status_message: "Full Hardware Analysis Success",
      duration: SECONDS,
      genre: "",
      lm_model: "carillon-nano/lm",
      dit_model: "carillon-nano",
    });
    expect(record.audio_codes).to.match(CODES);
    expect(record.bpm).to.be.within(30, 300);
    expect(record).to.include({ prompt: "", lyrics: "", language: "unknown" });
    expect((record.warnings as string[]).join()).to.match(
      /does not write text: the recording has no caption/,
    );
    expect(record.metas).to.include({ bpm: record.bpm, duration: SECONDS, keyscale: record.keyscale });
    expect(record.audio_paths).to.deep.equal([]);
  });

  it("analysis_only finds metadata for a caption, ignoring the client's values", async () => {
    const words = { lyrics: "[Verse]\nla la", bpm: 77, audio_duration: 42 };
    const record = await analyse({ analysis_only: true, ...words });
    expect(record).to.include({ dit_model: "None (Analysis Only)", lm_model: "carillon-nano/lm" });
    expect(record).to.include({ prompt: "calm piano", lyrics: words.lyrics });
    expect(record.bpm).to.be.within(30, 300);
    expect(record.keyscale).to.match(/ (major|minor)$/);
    expect(record.timesignature).to.match(/^[2346]$/);
    expect(record.duration).to.be.within(10, 600);
    expect(record.metas).to.include({ bpm: record.bpm, duration: record.duration });
  });

  it("tasks that analyse a recording are rejected without a source", async () => {
    for (const flag of ["extract_codes_only", "full_analysis_only"]) {
      const { status, body } = await client.post("/release_task", { [flag]: true });
      expect(status).to.equal(400);
      expect(body.detail).to.match(new RegExp(`^${flag} needs a source`));
    }
  });
});
