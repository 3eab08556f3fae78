/** Type declarations of find-libtorch.mjs. */
export interface Libtorch {
  directory: string;
  version: string;
}

export function findLibtorch(fits?: (found: Libtorch) => boolean): Libtorch | null;
export function installLibtorch(): Libtorch;
/** libtorch build for this machine's GPU: cu130, ..., or cpu. */
export function wheelBuild(): string;
/** Reason why this machine's GPU cannot be used; undefined if it can be used or the machine has no GPU. */
export function gpuFault(): string | undefined;
export function downloadedLibtorchDirectory(version: string): string;
export function hasPip(): boolean;
