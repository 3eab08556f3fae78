import {
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, join } from "node:path";
import { expect } from "chai";
import { type SongRecord, shortSong } from "../music/live-server.js";
import { temporaryDirectory } from "../music/tasks.js";
import { endServed, ServedProcess } from "./served-process.js";

const PAGE_BYTES = 4096;

describe("a server whose task store was damaged", () => {
  let directory: string;
  let songs: { id: string; file: string }[];

  /** Makes songs, then stops the server. */
  beforeEach(async () => {
    directory = temporaryDirectory();
    const server = await ServedProcess.startStub(directory, 0);
    songs = [];
    for (let i = 0; i < 3; i++) {
      const id = await server.client.submit(shortSong);
      const [record] = (await server.client.finished(id)).records as [SongRecord];
      songs.push({ id, file: basename(decodeURIComponent(record.file)) });
    }
    expect(await server.end("SIGTERM")).to.equal(0);
  });
  afterEach(endServed);

  const dataFile = () => join(directory, "tasks", "data.mdb");
  const asideFolders = () => readdirSync(directory).filter((name) => name.startsWith("tasks-damaged-"));

  /** Restarts the server. Every song must be there and complete. */
  async function expectAllSongs(): Promise<void> {
    const server = await ServedProcess.startStub(directory, 0);
    for (const { id } of songs) {
      const { item, records } = await server.client.query(id);
      expect(item.status, item.error).to.equal(1);
      await server.client.download(records[0] as SongRecord);
    }
    const { item } = await server.client.finished(await server.client.submit(shortSong));
    expect(item.status, item.error).to.equal(1);
    expect(server.log).to.include("restored the task store");
    expect(await server.end("SIGTERM")).to.equal(0);
    expect(existsSync(join(directory, "quarantine"))).to.equal(false);
  }

  it("restores the backup if the task store was truncated, and keeps the damaged file", async () => {
    truncateSync(dataFile(), statSync(dataFile()).size / 2);
    const damaged = readFileSync(dataFile());
    await expectAllSongs();
    const [aside] = asideFolders() as [string];
    expect(readFileSync(join(directory, aside, "data.mdb")).equals(damaged)).to.equal(true);
  });

  it("restores the backup if pages of the task store are corrupt @slow", async () => {
    const file = openSync(dataFile(), "r+");
    const pages = statSync(dataFile()).size / PAGE_BYTES;
    for (let page = 0; page < pages; page += 3)
      writeSync(file, Buffer.alloc(PAGE_BYTES, 0xa5), 0, PAGE_BYTES, page * PAGE_BYTES);
    await expectAllSongs();
    expect(asideFolders()).to.have.length(1);
  });

  it("restores the backup if the folder of the task store was removed @slow", async () => {
    rmSync(join(directory, "tasks"), { recursive: true });
    await expectAllSongs();
  });

  it("moves songs without a record to quarantine and logs them @slow", async () => {
    for (const name of ["tasks", "tasks-backup"]) rmSync(join(directory, name), { recursive: true });
    const server = await ServedProcess.startStub(directory, 0);
    const names = songs.map(({ file }) => file);
    expect(readdirSync(join(directory, "quarantine"))).to.have.members(names);
    for (const name of names) expect(server.log).to.include(name);
    expect(await server.end("SIGTERM")).to.equal(0);
    expect(readdirSync(join(directory, "quarantine"))).to.have.members(names);
  });

  it("skips an unreadable record that the backup lacks, logs it, and reports it to clients @slow", async () => {
    rmSync(join(directory, "tasks-backup"), { recursive: true });
    const id = songs[2]?.id as string;
    const unreadable = readFileSync(dataFile(), "latin1").replaceAll(`"id":"${id}"`, `"ID":"${id}"`);
    writeFileSync(dataFile(), unreadable, "latin1");

    const server = await ServedProcess.startStub(directory, 0);
    const ids = songs.map((song) => song.id);
    const { body } = await server.client.post("/query_result", { task_id_list: ids });
    const items = body.data as { task_id: string; status: number; error?: string }[];
    expect(items.map(({ status }) => status)).to.deep.equal([1, 1, 2]);
    expect(items[2]?.error).to.include(`cannot read the record of task ${id}`);
    expect(server.log).to.include(`cannot read the record of task ${id}`);
    expect(await server.end("SIGTERM")).to.equal(0);
  });

  it("ages songs by at most a day if the clock jumps ahead @slow", async () => {
    const clock = join(directory, "clock.json");
    const { serviceMs, wallMs } = JSON.parse(readFileSync(clock, "utf8"));
    writeFileSync(clock, JSON.stringify({ serviceMs, wallMs: wallMs - 8 * 24 * 3_600_000 }));
    const server = await ServedProcess.startStub(directory, 0);
    for (const { id } of songs) expect((await server.client.query(id)).item.status).to.equal(1);
    expect(await server.end("SIGTERM")).to.equal(0);
  });
});
