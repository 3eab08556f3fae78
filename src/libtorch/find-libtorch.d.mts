/** Declarations that TypeScript uses. */
export interface Libtorch {
  directory: string;
  version: string;
}

export function findLibtorch(fits?: (found: Libtorch) => boolean): Libtorch | null;
export function installLibtorch(): Libtorch;
/** libtorch build for this machine's GPU: cu130, ..., or cpu. */
export function wheelBuild(): string;
/** Why the build is cpu despite a GPU. */
export function gpuFault(): string | undefined;
export function downloadedDirectory(version: string): string;
export function hasPip(): boolean;
