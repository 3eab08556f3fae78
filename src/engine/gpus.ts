/** The GPUs of this machine, by NVIDIA's own tool: asking CUDA would take memory on each of them. */
import { execFile, execFileSync } from "node:child_process";
import { promisify } from "node:util";

export interface Gpu {
  /** As libtorch knows it: cuda:0, ... */
  device: string;
  name: string;
  freeBytes: number;
  totalBytes: number;
}

const TOOL = "nvidia-smi";
const QUERY = ["--query-gpu=index,uuid,memory.free,memory.total,name", "--format=csv,noheader,nounits"];
const TIMEOUT_MS = 10_000;
const MEGABYTE = 2 ** 20;

/** The GPUs that CUDA shows this process; none where there is no driver. */
export function listGpus(): Gpu[] {
  // The order that nvidia-smi has, unless the user wants another: then a number does not tell which GPU it is.
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
    return []; // No driver, no GPU: libtorch says so where one was asked for.
  }
}

/** The same while the process does other things, for what changes: how much of their memory is free. */
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

/** In the order in which CUDA numbers them: indices or beginnings of UUIDs, up to the first that is no GPU's. */
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
 * Devices for so many models, where `auto` says to choose: the freest GPU first, and each further model one of its own
 * while there are any. Stays `auto` where no GPU is known, which is libtorch's to resolve.
 */
export function chooseDevices(gpus: readonly Gpu[], wanted: readonly string[]): string[] {
  const freest = gpus.toSorted((a, b) => b.freeBytes - a.freeBytes);
  let chosen = 0;
  return wanted.map((device) => {
    if (device !== "auto" || freest.length === 0) return device;
    return (freest[chosen++ % freest.length] as Gpu).device;
  });
}

/** Cards with less are in machines that people also work at. */
const LARGE_GPU_BYTES = 32 * 2 ** 30;
const SMALL_GPU_IDLE_SECONDS = 600;

/** For how long an unused model stays on the device if nobody says; `gpu` undefined: on the processor. 0: for good. */
export function defaultIdleSeconds(gpu: Gpu | undefined): number {
  return gpu !== undefined && gpu.totalBytes < LARGE_GPU_BYTES ? SMALL_GPU_IDLE_SECONDS : 0;
}
