/**
 * npm run release: builds, strips and checks the packages of this platform, and packs them into release/*.tgz.
 * The platform packages are packed first, because `carillon` lists those of its version in release/ as optional
 * dependencies.
 *
 *   npm run release                   all
 *   npm run release -- --platform     platform packages only, for one machine of several
 *   npm run release -- --main         `carillon` only, once the packages of all platforms are in release/
 *   npm run release -- --stage        the unpacked folders in release/stage/, for the pinned libtorch only
 *   ... --partial                     skips addons for libtorch versions that pip cannot install here
 */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { stageMainPackage } from "./release/main-package.mjs";
import { platformName, stageAddons, stagePlatform } from "./release/platform-package.mjs";
import { packFolder } from "./release/stage.mjs";
import { PINNED_VERSION, RELEASE_VERSIONS } from "./setup/libtorch.mjs";
import { installPackages } from "./setup/packages.mjs";
import { manifest, projectRoot, SetupError } from "./setup/run.mjs";
import { buildTypeScript } from "./setup/typescript.mjs";
import { runScript } from "./setup.mjs";

const RELEASE = join(projectRoot, "release");
const STAGE = join(RELEASE, "stage");
const TARBALL = new RegExp(
  `^carillon-(\\w+-\\w+(?:-cuda)?)-${manifest.version.replaceAll(".", "\\.")}\\.tgz$`,
);

function release(options) {
  mkdirSync(RELEASE, { recursive: true });
  if (!existsSync(join(projectRoot, "node_modules"))) installPackages();
  const stageOnly = options.includes("--stage");
  const platforms = [platformName, `${platformName}-cuda`];
  if (!options.includes("--main")) {
    if (process.platform !== "linux")
      throw new SetupError("packages with binaries can be built only on Linux");
    const versions = stageOnly ? [PINNED_VERSION] : RELEASE_VERSIONS;
    const folders = [
      stagePlatform(join(STAGE, platforms[0])),
      stageAddons(join(STAGE, platforms[1]), versions, options.includes("--partial")),
    ];
    if (!stageOnly) for (const folder of folders) packFolder(folder, RELEASE);
  }
  if (options.includes("--platform")) return;
  buildTypeScript();
  const folder = stageMainPackage(join(STAGE, "carillon"), stageOnly ? platforms : packedPlatforms());
  if (!stageOnly) packFolder(folder, RELEASE);
}

function packedPlatforms() {
  const platforms = readdirSync(RELEASE).flatMap((name) => TARBALL.exec(name)?.[1] ?? []);
  if (platforms.length === 0)
    throw new SetupError("release/ has no platform package of this version: run with --platform first");
  return platforms;
}

await runScript(() => release(process.argv.slice(2)));
