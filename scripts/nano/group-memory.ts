import { existsSync, readdirSync, readFileSync } from "node:fs";

const pageBytes = 4096;

/** Anonymous memory of all processes of a group, without mapped files; 0 on systems other than Linux. */
export function groupMemoryBytes(group: number): number {
  if (process.platform !== "linux") return 0;
  const processes = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return processes.reduce((sum, id) => sum + (groupOf(id) === group ? anonymousBytes(id) : 0), 0);
}

function groupOf(id: string): number | undefined {
  const fields = readProcess(id, "stat").split(") ").at(-1)?.split(" ");
  return fields?.[2] === undefined ? undefined : Number(fields[2]);
}

function anonymousBytes(id: string): number {
  const [, resident = 0, shared = 0] = readProcess(id, "statm").split(" ").map(Number);
  return (resident - shared) * pageBytes;
}

/** Empty if the process has ended. */
function readProcess(id: string, file: string): string {
  try {
    return readFileSync(`/proc/${id}/${file}`, "utf8");
  } catch (error) {
    if (!existsSync(`/proc/${id}`)) return "";
    throw error;
  }
}
