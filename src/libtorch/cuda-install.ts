/** `carillon cuda install`: installs libtorch for this machine's GPU into the cache, with pip or from pinned wheels. */
import { createWriteStream } from "node:fs";
import { access, mkdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { openPromise } from "yauzl";
import {
  downloadedLibtorchDirectory,
  findLibtorch,
  gpuFault,
  hasPip,
  installLibtorch,
  wheelBuild,
} from "../../src/libtorch/find-libtorch.mjs";
import { download, type FileSource } from "../models/download.js";
import { PullError } from "../models/errors.js";
import { AdvisedError } from "../system/config-error.js";
import { lockDirectory } from "../system/directory-lock.js";
import { CUDA_WHEELS, type Wheel, type Wheels } from "./cuda-wheels.js";
import { listGpus } from "./gpus.js";
import { isCudaBuild, minorOf, prebuiltMinors } from "./prebuilt.js";

type OnProgress = (progress: { doneBytes: number; totalBytes: number; wheel: string }) => void;

/** Files kept from a wheel: libraries, headers, licences. Python files are skipped. */
const KEPT = /\.so(\.\d+)*$|^torch\/(include\/|version\.py$)|\.dist-info\/.*(licen[cs]e|notice)/i;

/** Bytes on disk per byte of a wheel: 1.63 on average. */
const UNPACKED_SHARE = 1.7;

/**
 * Finds a CUDA libtorch that the addon supports, or installs one.
 * @returns its folder
 * @throws AdvisedError if there is no supported GPU, PullError if the download fails; each message is one line
 */
export async function installCudaLibtorch(signal: AbortSignal, onProgress: OnProgress): Promise<string> {
  if (listGpus().length === 0)
    throw new AdvisedError("nvidia-smi lists no GPU: install NVIDIA's driver first, then run this again.");
  const fault = gpuFault();
  if (fault !== undefined) throw new AdvisedError(`${fault}.`);
  const minors = prebuiltMinors();
  const fits = (version: string) => minors.length === 0 || minors.includes(minorOf(version));
  const found = findLibtorch((one) => fits(one.version) && isCudaBuild(one));
  if (found !== null) return found.directory;
  if (hasPip()) return installLibtorch().directory;
  const build = wheelBuild();
  const platform = `${process.platform}-${process.arch}`;
  const { version } = CUDA_WHEELS;
  if (build !== CUDA_WHEELS.build || platform !== CUDA_WHEELS.platform || !fits(version))
    throw new AdvisedError(
      `Without pip only libtorch ${version} for ${CUDA_WHEELS.build} on ${CUDA_WHEELS.platform} can be downloaded, but this machine needs ${minors.join(", ")} for ${build} on ${platform}: install python3 with pip.`,
    );
  const target = downloadedLibtorchDirectory(version);
  await downloadLibtorch(CUDA_WHEELS, target, signal, onProgress);
  return join(target, "torch");
}

/**
 * Downloads, verifies and unpacks wheels. The folder appears atomically; an interrupted download resumes.
 * `CARILLON_WHEELS` sets a mirror.
 * @throws PullError with one line: the failure and what to do
 */
export async function downloadLibtorch(
  { host, wheels }: Wheels,
  target: string,
  signal: AbortSignal,
  onProgress: OnProgress,
): Promise<void> {
  const partial = `${target}.part`;
  const source = new WheelHost(process.env.CARILLON_WHEELS || host, signal);
  const totalBytes = wheels.reduce((sum, { bytes }) => sum + bytes, 0);
  let doneBytes = 0;
  await mkdir(partial, { recursive: true });
  const lock = await lockDirectory(partial, "CARILLON_CACHE");
  try {
    await checkSpace(wheels, partial);
    for (const wheel of wheels) {
      const name = basename(wheel.path);
      await unpackWheel(wheel, source, partial, (bytes) => {
        doneBytes += bytes;
        onProgress({ doneBytes, totalBytes, wheel: name });
      });
    }
    await rm(target, { recursive: true, force: true });
    await rename(partial, target);
  } finally {
    await lock.release();
  }
}

/**
 * Downloads one wheel and unpacks it into the folder, then writes an empty marker file. Does nothing if the marker
 * file exists.
 */
async function unpackWheel(
  wheel: Wheel,
  source: FileSource,
  directory: string,
  onBytes: (count: number) => void,
): Promise<void> {
  const file = join(directory, basename(wheel.path));
  const done = doneFile(wheel, directory);
  if (await isThere(done)) return onBytes(wheel.bytes);
  const listed = {
    repository: "the package index",
    path: wheel.path,
    sizeBytes: wheel.bytes,
    checksum: { algorithm: "sha256", hex: wheel.sha256 },
  } as const;
  await download(listed, file, source, onBytes);
  try {
    await unpack(file, directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC")
      throw noSpace(directory, wheel.bytes * UNPACKED_SHARE, error);
    throw error;
  }
  await writeFile(done, "");
  await rm(file);
}

const doneFile = ({ path }: Wheel, directory: string) => join(directory, `${basename(path)}.done`);

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );

async function unpack(file: string, directory: string): Promise<void> {
  const archive = await openPromise(file);
  try {
    for await (const entry of archive.eachEntry()) {
      if (!KEPT.test(entry.fileName)) continue;
      const path = join(directory, entry.fileName);
      await mkdir(dirname(path), { recursive: true });
      await pipeline(await archive.openReadStreamPromise(entry), createWriteStream(path, { mode: 0o755 }));
    }
  } finally {
    archive.close();
  }
}

async function checkSpace(wheels: readonly Wheel[], directory: string): Promise<void> {
  let bytes = 0;
  for (const wheel of wheels)
    if (!(await isThere(doneFile(wheel, directory)))) bytes += wheel.bytes * UNPACKED_SHARE;
  if (bytes === 0) return;
  bytes += Math.max(...wheels.map((wheel) => wheel.bytes));
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize < bytes) throw noSpace(directory, bytes);
}

function noSpace(directory: string, bytes: number, cause?: unknown): PullError {
  const gigabytes = (bytes / 1e9).toFixed(1);
  return new PullError(
    "DISK_FULL",
    `libtorch needs ${gigabytes} GB of free space on the disk of ${dirname(directory)}. Free some space, or set CARILLON_CACHE to another disk, and run the same command again.`,
    { cause },
  );
}

class WheelHost implements FileSource {
  constructor(
    readonly url: string,
    readonly signal: AbortSignal,
  ) {}

  /** @throws PullError, or the signal's reason */
  async *read(
    { path, sizeBytes }: { path: string; sizeBytes: number },
    fromByte: number,
    signal: AbortSignal,
  ): AsyncGenerator<Uint8Array, void> {
    const headers = fromByte === 0 ? {} : { range: `bytes=${fromByte}-` };
    const response = await fetch(`${this.url}/${path}`, { headers, signal }).catch((error) => {
      signal.throwIfAborted();
      throw this.#failure("UNREACHABLE", "cannot be reached", error);
    });
    const expected = fromByte === 0 ? 200 : 206;
    if (response.status !== expected || response.body === null)
      throw this.#failure("HUB", `answers ${path} with status ${response.status}`);
    let received = fromByte;
    try {
      for await (const chunk of response.body) {
        received += chunk.length;
        if (received > sizeBytes) throw new Error(`the file is longer than the expected ${sizeBytes} bytes`);
        yield chunk;
      }
      if (received < sizeBytes) throw new Error("the connection was closed early");
    } catch (error) {
      signal.throwIfAborted();
      const how = `failed after ${received} of ${sizeBytes} bytes of ${basename(path)}`;
      throw this.#failure("CONNECTION_LOST", how, error);
    }
  }

  #failure(code: "UNREACHABLE" | "HUB" | "CONNECTION_LOST", what: string, cause?: unknown): PullError {
    this.signal.throwIfAborted();
    const { message = "", cause: inner } = (cause ?? {}) as Error;
    const reason = (inner as Error | undefined)?.message || message;
    return new PullError(
      code,
      `${this.url} ${what}${reason === "" ? "" : ` (${reason})`}. Check the network and run the same command again to resume. CARILLON_WHEELS sets a mirror; with python3 and pip installed, pip's index is used instead.`,
      { cause },
    );
  }
}
