/** Which task describes which recording, kept in this browser. The service keeps the descriptions. */
import { carillon, type Parameters, submit } from "./api.js";
import { isText, keepText, readEntries } from "./kept.js";
import { Store } from "./store.js";

const ITEM = "carillon-descriptions";
const MAX_KEPT = 100;

/** Ids of tasks by recording. */
const load = () => readEntries(ITEM, isText);

export const descriptions = new Store(load());

function keep(entries: [string, string][]): void {
  descriptions.set(Object.fromEntries(entries.slice(-MAX_KEPT)));
  keepText(ITEM, JSON.stringify(descriptions.value));
}

/** The key of a recording: a path on the server, or a file that was not sent yet. */
export function recordingKey(path: unknown, file: File | undefined): string {
  return file === undefined ? String(path) : `${file.name} ${file.size} ${file.lastModified}`;
}

/** Queues a task that describes a recording. @param name of the recording, for the queue */
export async function describe(
  recording: string,
  name: string,
  parameters: Parameters,
  files: Record<string, File> = {},
): Promise<void> {
  const { task_id: id } = await submit({ ...parameters, full_analysis_only: true }, files);
  keep([...others(recording), [recording, id]]);
  await carillon.mark(id, { title: name });
}

export function forgetDescription(recording: string): void {
  keep(others(recording));
}

function others(recording: string): [string, string][] {
  return Object.entries(load()).filter(([other]) => other !== recording);
}
