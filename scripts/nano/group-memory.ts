import { readdirSync, readFileSync } from "node:fs";

const pageBytes = 4096;

/** Returns the memory of a process group in bytes, without mapped files and shared memory. */
export function groupMemoryBytes(group: number): number {
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return processes.reduce((sum, id) => sum + anonymousBytes(id, group), 0);
}

/** Returns the memory of a process; 0 if it belongs to another group or has ended. */
function anonymousBytes(id: string, group: number): number {
  try {
    const fields = readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1)?.split(" ");
    if (Number(fields?.[2]) !== group) return 0;
    const [, resident = 0, shared = 0] = readFileSync(`/proc/${id}/statm`, "utf8").split(" ").map(Number);
    return (resident - shared) * pageBytes;
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return 0;
    throw error;
  }
}
