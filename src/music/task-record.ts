/**
 * A task as bytes: a line `carillon-task VERSION CHECKSUM`, then the task as JSON. The checksum, the first half of the
 * SHA-256 of the JSON, tells whether the bytes are those that were written. Records from before version 1 are bare JSON.
 */
import { createHash } from "node:crypto";
import { DamagedRecordError, type Task, type TaskState } from "./store.js";

const VERSION = 1;
const HEADER = /^carillon-task (\d+) ([0-9a-f]{32})$/;
const STATES: readonly TaskState[] = ["queued", "running", "succeeded", "failed"];
const LINE_FEED = 0x0a;
const OPENING_BRACE = 0x7b;

export function encodeTask(task: Task): Buffer {
  const json = Buffer.from(JSON.stringify(task));
  return Buffer.concat([Buffer.from(`carillon-task ${VERSION} ${checksum(json)}\n`), json]);
}

/** Takes the place of a record that could not be read of a damaged store, so that clients learn of it. */
export const LOST_RECORD = Buffer.alloc(0);

/** @throws DamagedRecordError */
export function decodeTask(id: string, record: Buffer): Task {
  if (record.length === 0) throw new DamagedRecordError(id, "lost", "it was lost with a damaged store");
  const json = record[0] === OPENING_BRACE ? record : checkedBody(id, record);
  let task: Task;
  try {
    task = JSON.parse(json.toString());
  } catch {
    throw new DamagedRecordError(id, "corrupt", "it is no JSON");
  }
  if (task?.id !== id || !STATES.includes(task.state) || typeof task.request !== "object") {
    throw new DamagedRecordError(id, "corrupt", "it is not a task of this name");
  }
  return task;
}

function checkedBody(id: string, record: Buffer): Buffer {
  const end = record.indexOf(LINE_FEED);
  const [, version, expected] = HEADER.exec(record.subarray(0, Math.max(end, 0)).toString("latin1")) ?? [];
  if (version === undefined) throw new DamagedRecordError(id, "corrupt", "it does not begin as one");
  if (Number(version) !== VERSION) {
    throw new DamagedRecordError(
      id,
      "newer",
      `its format is version ${version}, this program knows ${VERSION}`,
    );
  }
  const json = record.subarray(end + 1);
  if (checksum(json) !== expected) throw new DamagedRecordError(id, "corrupt", "its checksum is wrong");
  return json;
}

function checksum(json: Buffer): string {
  return createHash("sha256").update(json).digest("hex").slice(0, 32);
}
