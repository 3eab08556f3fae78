import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "chai";
import { type DirectoryInUseError, lockDirectory } from "../../src/system/directory-lock.js";
import { temporaryDirectory } from "../music/tasks.js";

describe("locking of a directory", () => {
  const directory = temporaryDirectory();

  function refusal(): Promise<DirectoryInUseError | null> {
    return lockDirectory(directory, "SVC_TMPDIR").then(
      async (lock) => {
        await lock.release();
        return null;
      },
      (error: DirectoryInUseError) => error,
    );
  }

  it("rejects a second lock; the error says which setting to change", async () => {
    const lock = await lockDirectory(directory, "SVC_TMPDIR");
    const error = await refusal();
    expect(error).to.include({ name: "DirectoryInUseError", directory });
    expect(error?.message).to.include("set SVC_TMPDIR to another directory");
    await lock.release();
    expect(await refusal()).to.equal(null);
  });

  it("waits until the holder releases the lock, and reports the wait once", async () => {
    const held = await lockDirectory(directory, "SVC_TMPDIR");
    let waits = 0;
    const onWait = () => {
      waits++;
      void held.release();
    };
    const lock = await lockDirectory(directory, "SVC_TMPDIR", { limitMs: 60_000, onWait });
    await lock.release();
    expect(waits).to.equal(1);
  });

  it("a lock is released when its process ends, even by kill -9", async () => {
    const module = new URL("../../src/system/directory-lock.ts", import.meta.url).href;
    const program = `
      const { lockDirectory } = await import(${JSON.stringify(module)});
      const lock = await lockDirectory(${JSON.stringify(directory)}, "SVC_TMPDIR");
      console.log("locked");
      setInterval(() => lock, 1000);`;
    const args = ["--import", "tsx", "--input-type=module", "--eval", program];
    const holder = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    await once(holder.stdout, "data");
    expect(await refusal()).to.include({ name: "DirectoryInUseError" });
    const ended = once(holder, "exit");
    holder.kill("SIGKILL");
    await ended;
    expect(await refusal()).to.equal(null);
  });
});
