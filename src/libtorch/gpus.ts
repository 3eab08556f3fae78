/** Lists GPUs with nvidia-smi: a query through CUDA would allocate memory on each of them. */
import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";

export interface Gpu {
  /** libtorch's name: cuda:0, ... */
  device: string;
  name: string;
  freeBytes: number;
  totalBytes: number;
}

const TOOL = "nvidia-smi";
const QUERY = ["--query-gpu=index,uuid,memory.free,memory.total,name", "--format=csv,noheader,nounits"];
const TIMEOUT_MS = 10_000;
const MEGABYTE = 2 ** 20;

/** GPUs visible to CUDA in this process; empty without a driver. */
export function listGpus(): Gpu[] {
  // Makes CUDA number the GPUs as nvidia-smi does. Respects an order that the user chose.
  process.env.CUDA_DEVICE_ORDER ??= "PCI_BUS_ID";
  if (process.env.CUDA_DEVICE_ORDER !== "PCI_BUS_ID") return [];
  try {
    return gpusOf(
      execFileSync(TOOL, QUERY, {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        timeout: TIMEOUT_MS,
      }),
    );
  } catch {
    return []; // No driver. If a GPU was requested, libtorch reports the error.
  }
}

/** Like listGpus, but asynchronous, for repeated reads of the free memory. Throws if nvidia-smi fails. */
export async function readGpus(): Promise<Gpu[]> {
  return gpusOf((await promisify(execFile)(TOOL, QUERY, { timeout: TIMEOUT_MS })).stdout);
}

function gpusOf(table: string): Gpu[] {
  const lines = table.trim().split("\n");
  const rows = lines.map((line) => line.split(", "));
  return visible(rows, process.env.CUDA_VISIBLE_DEVICES).map(([, , free, total, ...name], position) => ({
    device: `cuda:${position}`,
    name: name.join(", "),
    freeBytes: Number(free) * MEGABYTE,
    totalBytes: Number(total) * MEGABYTE,
  }));
}

/** Applies CUDA_VISIBLE_DEVICES: indices or UUID prefixes, up to the first invalid entry. */
function visible(rows: string[][], list: string | undefined): string[][] {
  if (list === undefined) return rows;
  const shown: string[][] = [];
  for (const word of list.split(",").map((part) => part.trim())) {
    const row = rows.find(([index, uuid]) => index === word || (word !== "" && uuid?.startsWith(word)));
    if (row === undefined) break;
    shown.push(row);
  }
  return shown;
}

/**
 * Replaces each `auto` by a GPU. Takes the GPU with the most free memory first. Keeps `auto` on a machine without
 * GPUs: libtorch then chooses the device.
 */
export function chooseDevices(gpus: readonly Gpu[], wanted: readonly string[]): string[] {
  const byFreeMemory = gpus.toSorted((a, b) => b.freeBytes - a.freeBytes);
  let chosen = 0;
  return wanted.map((device) => {
    if (device !== "auto" || byFreeMemory.length === 0) return device;
    return (byFreeMemory[chosen++ % byFreeMemory.length] as Gpu).device;
  });
}

/** Smaller GPUs unload idle models, because they usually also drive a desktop. */
const LARGE_GPU_BYTES = 32 * 2 ** 30;
const SMALL_GPU_IDLE_SECONDS = 600;

/**
 * Seconds after which a device unloads an idle model by default; 0 for never.
 * @param gpu undefined for the CPU
 */
export function defaultIdleSeconds(gpu: Gpu | undefined): number {
  return gpu !== undefined && gpu.totalBytes < LARGE_GPU_BYTES ? SMALL_GPU_IDLE_SECONDS : 0;
}
