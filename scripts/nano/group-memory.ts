import { readdirSync, readFileSync } from "node:fs";

const pageBytes = 4096;

/**
 * Memory of all processes of a process group in bytes. Mapped files and shared memory are not counted. 0 on
 * systems other than Linux.
 */
export function groupMemoryBytes(group: number): number {
  if (process.platform !== "linux") return 0;
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return processes.reduce((sum, id) => sum + anonymousBytes(id, group), 0);
}

/** Returns 0 for a process of another group or one that has ended. */
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
