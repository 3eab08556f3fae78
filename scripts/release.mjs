/**
 * npm run release: builds, strips and checks the packages of this platform, and packs them into release/*.tgz. The
 * platform's own comes first: ours names as optional dependencies those that lie in release/, in its own version.
 *
 *   npm run release                   both
 *   npm run release -- --platform     the platform's alone, as on one machine of several
 *   npm run release -- --main         ours alone, once those of all platforms have been brought to release/
 *   npm run release -- --stage        the folders release/stage/ that they are packed from, of this platform and ours
 */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { stageMain } from "./release/main-package.mjs";
import { platformName, stagePlatform } from "./release/platform-package.mjs";
import { manifest, pack } from "./release/stage.mjs";
import { buildNative } from "./setup/native.mjs";
import { installPackages } from "./setup/packages.mjs";
import { projectRoot, SetupError } from "./setup/run.mjs";
import { buildTypeScript } from "./setup/typescript.mjs";
import { main } from "./setup.mjs";

const RELEASE = join(projectRoot, "release");
const TARBALL = new RegExp(`^carillon-(\\w+-\\w+)-${manifest.version.replaceAll(".", "\\.")}\\.tgz$`);

function release(only) {
  mkdirSync(RELEASE, { recursive: true });
  if (!existsSync(join(projectRoot, "node_modules"))) installPackages();
  if (only !== "--main") {
    buildNative();
    const folder = stagePlatform(join(RELEASE, "stage", platformName));
    if (only !== "--stage") pack(folder, RELEASE);
  }
  if (only === "--platform") return;
  buildTypeScript();
  const platforms = only === "--stage" ? [platformName] : packedPlatforms();
  const folder = stageMain(join(RELEASE, "stage/carillon"), platforms);
  if (only !== "--stage") pack(folder, RELEASE);
}

function packedPlatforms() {
  const platforms = readdirSync(RELEASE).flatMap((name) => TARBALL.exec(name)?.[1] ?? []);
  if (platforms.length === 0) throw new SetupError("release/ holds no platform's package of this version");
  return platforms;
}

await main(() => release(process.argv[2]));
