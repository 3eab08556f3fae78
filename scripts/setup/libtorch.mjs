/** Finds libtorch for builds, or installs it with pip; installs pip first if it is missing. */
import {
  findCpuLibtorch,
  findLibtorch,
  installCpuLibtorch,
  installLibtorch,
  PINNED_VERSION,
} from "../../src/libtorch/find-libtorch.mjs";
import { installPip } from "./system.mjs";

export { findLibtorch, PINNED_VERSION, wheelBuild } from "../../src/libtorch/find-libtorch.mjs";

/** libtorch versions that packages are built for: one for each supported minor version. */
export const RELEASE_VERSIONS = ["2.11.0", "2.12.0", PINNED_VERSION, "2.14.1"];

/** Returns { directory, version } of a libtorch with headers and libraries. */
export const provideLibtorch = () => findLibtorch() ?? withPip(installLibtorch);

export const provideCpuLibtorch = (version) =>
  findCpuLibtorch(version) ?? withPip(() => installCpuLibtorch(version));

function withPip(install) {
  installPip();
  return install();
}
