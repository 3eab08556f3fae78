/** The native programs that make and judge the embedded model. */
import { pathToFileURL } from "node:url";
import { main, setUp } from "../setup.mjs";

/** A part as scripts/setup/native.mjs describes them. */
export const NANO = {
  name: "nano",
  options: ["CARILLON_NANO"],
  sources: ["scripts/nano/CMakeLists.txt", "scripts/nano/pretraining", "scripts/nano/eval/vae_roundtrip.cpp"],
  products: [
    "build/nano/carillon-pretrain",
    "build/nano/carillon-nano-test",
    "build/nano/carillon-vae-roundtrip",
  ],
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) await main(() => setUp(NANO));
