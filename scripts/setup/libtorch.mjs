/** libtorch for builds: found on this machine, else installed with pip, which is installed too if it is missing. */
import {
  findCpuLibtorch,
  findLibtorch,
  installCpuLibtorch,
  installLibtorch,
  PINNED,
} from "../../src/libtorch/find-libtorch.mjs";
import { installPip } from "./system.mjs";

export { findLibtorch, PINNED, wheelBuild } from "../../src/libtorch/find-libtorch.mjs";

/** Versions that packages are built for: one for each supported minor. */
export const RELEASED = ["2.11.0", "2.12.0", PINNED, "2.14.1"];

/** Returns { directory, version } of a libtorch with headers and libraries. */
export const provideLibtorch = () => findLibtorch() ?? withPip(installLibtorch);

export const provideForRelease = (version) =>
  findCpuLibtorch(version) ?? withPip(() => installCpuLibtorch(version));

function withPip(install) {
  installPip();
  return install();
}
