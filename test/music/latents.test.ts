import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { readLatents, writeLatents } from "../../src/music/audio/latents-file.js";
import { type SongRecord, serverForAll, shortSong } from "./live-server.js";
import { temporaryDirectory } from "./tasks.js";

const { audio_duration: _length, ...anyLength } = shortSong;
const edit = { ...anyLength, audio_format: "wav32", use_random_seed: false, seed: 4 };
const seeded = { ...shortSong, audio_format: "wav32", use_random_seed: false, seed: 3 };

describe("latents in responses and requests", function () {
  this.timeout(300_000);
  const directory = temporaryDirectory();
  const server = serverForAll({}, directory);
  let song: SongRecord;
  let file: Buffer;

  before(async () => {
    song = await server.client.makeOne({ ...seeded, return_latents: true });
    file = await server.client.download({ file: song.latents as string });
  });

  const upload = (content: Uint8Array<ArrayBuffer> | Buffer) =>
    new File([new Uint8Array(content)], "song.safetensors");
  const wav = async (parameters: object) =>
    (await server.client.download(await server.client.makeOne(parameters))).toString("base64");

  /** Changes a copy of the song's latents, and returns it as a file to upload. */
  async function changed(
    change: (latents: Awaited<ReturnType<typeof readLatents>>) => object,
  ): Promise<File> {
    const path = join(directory, "changed.safetensors");
    writeFileSync(path, file);
    const latents = await readLatents(path, "latents", 600);
    await writeLatents(path, { ...latents, ...change(latents) });
    return upload(readFileSync(path));
  }

  it("latents are returned only if return_latents is set", async () => {
    expect(await server.client.makeOne(seeded)).to.not.have.property("latents");
    expect(song.latents).to.match(/^\/v1\/audio\?path=.*-0\.safetensors$/);
    const header = JSON.parse(file.toString("utf8", 8, 8 + Number(file.readBigUInt64LE())));
    expect(header.latents).to.include({ dtype: "F32" });
    expect(header.latents.shape[0]).to.equal(250);
    expect(header.__metadata__.samples).to.equal("480000");
    expect(Number(header.__metadata__.gain)).to.be.within(0.1, 10);
  });

  it("latents can be the source of a cover; upload and URL give the same song", async () => {
    const cover = { ...edit, task_type: "cover" };
    const uploaded = await server.client.makeOne({ ...cover, src_latents: upload(file) });
    expect(uploaded.metas.duration).to.equal(10);
    expect(uploaded.warnings).to.deep.equal([]);
    const bytes = (await server.client.download(uploaded)).toString("base64");
    expect((await wav({ ...cover, src_latents_path: song.latents })) === bytes).to.equal(true);
    expect((await wav({ ...cover, src_audio_path: song.file })) === bytes).to.equal(false);
  });

  it("a repaint has the source's latents outside the window", async () => {
    const repaint = {
      task_type: "repaint",
      repainting_start: 4,
      repainting_end: 5,
      repaint_mode: "aggressive",
    };
    const again = await server.client.makeOne({
      ...edit,
      ...repaint,
      src_latents_path: song.latents,
      return_latents: true,
    });
    const kept = join(directory, "kept.safetensors");
    const made = join(directory, "made.safetensors");
    writeFileSync(kept, file);
    writeFileSync(made, await server.client.download({ file: again.latents as string }));
    const [a, b] = await Promise.all([kept, made].map((path) => readLatents(path, "latents", 600)));
    if (a === undefined || b === undefined) throw new Error("a latents file could not be read");
    const isSame = (frame: number) => {
      const width = a.values.length / a.frames;
      const row = (values: Float32Array) => values.subarray(frame * width, (frame + 1) * width).join();
      return row(a.values) === row(b.values);
    };
    expect([0, 99, 125, 249].map(isSame)).to.deep.equal([true, true, true, true]);
    expect(isSame(110)).to.equal(false);
  });

  it("latents can be the timbre reference", async () => {
    const plain = { ...seeded, seed: 5 };
    const referred = await wav({ ...plain, ref_latents: upload(file) });
    expect(referred === (await wav(plain))).to.equal(false);
    expect(referred === (await wav({ ...plain, ref_latents_path: song.latents }))).to.equal(true);
  });

  it("latents replace audio that the same request sends", async () => {
    const both = { ...edit, task_type: "cover", src_latents_path: song.latents, src_audio_path: song.file };
    expect((await server.client.makeOne(both)).warnings).to.deep.equal([
      "src_audio was ignored: replaced by src_latents",
    ]);
  });

  it("latents are deleted with their task", async () => {
    const other = await server.client.makeOne({ ...seeded, return_latents: true });
    const name = decodeURIComponent(other.latents?.split("path=")[1] ?? "");
    expect(existsSync(name)).to.equal(true);
    const [id] = /[0-9a-f-]{36}/.exec(name) ?? [];
    expect((await server.client.delete(`/v1/tasks/${id}?state=succeeded`)).status).to.equal(200);
    expect(existsSync(name)).to.equal(false);
    expect(readdirSync(join(directory, "api_audio")).filter((file) => file.endsWith(".part"))).to.deep.equal(
      [],
    );
  });

  it("latents are refused at submission if the file is damaged or contains NaN", async () => {
    const refusal = async (src_latents: File) => {
      const { status, body } = await server.client.postForm("/release_task", {
        ...edit,
        task_type: "cover",
        src_latents,
      });
      expect(status).to.equal(400);
      return body.detail;
    };
    expect(await refusal(upload(Buffer.from("no latents")))).to.equal(
      "src_latents is not a safetensors file, or is truncated",
    );
    expect(await refusal(upload(file.subarray(0, 9000)))).to.equal(
      "src_latents is not a safetensors file, or is truncated",
    );
    const broken = await changed(({ values }) => ({ values: values.fill(Number.NaN, 7, 8) }));
    expect(await refusal(broken)).to.equal("src_latents holds a value that is not a number");
    const frame = 1920;
    for (const samples of [480_001, 480_000 - frame]) {
      const unfitting = await changed(() => ({ samples }));
      expect(await refusal(unfitting)).to.equal("src_latents states a length that does not match its frames");
    }
    expect(await refusal(await changed(() => ({ gain: -1 })))).to.equal(
      "src_latents states a gain that is not a positive number",
    );
  });

  it("a task with latents of another shape or VAE fails; the error says what differs", async () => {
    const failure = async (src_latents: File) => {
      const id = await server.client.submit({ ...edit, task_type: "cover", src_latents });
      return (await server.client.finished(id)).item.error;
    };
    const narrow = await changed(({ values, frames }) => ({
      values: values.subarray(0, 3 * frames),
      silentFrame: null,
    }));
    expect(await failure(narrow)).to.match(
      /src_latents has shape \[250, 3\], but latents of this model are \[frames, \d+\]/,
    );
    const foreign = await changed(({ silentFrame }) => ({
      silentFrame: silentFrame?.map((value) => value + 1),
    }));
    expect(await failure(foreign)).to.include(
      "src_latents was made with a different VAE than carillon-nano uses",
    );
  });
});
