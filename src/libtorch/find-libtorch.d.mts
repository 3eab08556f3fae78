/** Type declarations of find-libtorch.mjs. */
export interface Libtorch {
  directory: string;
  version: string;
}

export function findLibtorch(fits?: (found: Libtorch) => boolean): Libtorch | null;
export function installLibtorch(): Libtorch;
/** Reason why this machine's GPU cannot be used; undefined if it can be used or the machine has no GPU. */
export function gpuFault(): string | undefined;
export function hasPip(): boolean;
