/** `carillon cuda install`: installs libtorch for this machine's GPU into the cache, with pip. */

// This relative path is valid from src/libtorch/ and from dist/libtorch/.
import { findLibtorch, gpuFault, hasPip, installLibtorch } from "../../src/libtorch/find-libtorch.mjs";
import { AdvisedError } from "../system/advised-error.js";
import { listGpus } from "./gpus.js";
import { isCudaBuild, minorOf, prebuiltMinors } from "./prebuilt.js";

/**
 * Finds a CUDA libtorch that the addon supports, or installs one.
 * @returns its folder
 * @throws AdvisedError if there is no supported GPU, or no pip
 */
export function installCudaLibtorch(): string {
  if (listGpus().length === 0)
    throw new AdvisedError("nvidia-smi lists no GPU: install NVIDIA's driver first, then run this again.");
  const fault = gpuFault();
  if (fault !== undefined) throw new AdvisedError(`${fault}.`);
  const minors = prebuiltMinors();
  const fits = (version: string) => minors.length === 0 || minors.includes(minorOf(version));
  const found = findLibtorch((one) => fits(one.version) && isCudaBuild(one));
  if (found !== null) return found.directory;
  if (!hasPip())
    throw new AdvisedError("libtorch is installed with pip: install python3 with pip, then run this again.");
  return installLibtorch().directory;
}
