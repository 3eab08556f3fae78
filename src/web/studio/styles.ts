/** Styles (adapters) that the form shows as on, and those that the server has lost, for example by a restart. */
import { type AdapterStatus, patient } from "./api.js";
import { reread } from "./endpoint.js";
import { t } from "./language.js";
import { Store } from "./store.js";

export const ADAPTER_STATUS = "/v1/lora/status";
export const SAVED_ADAPTERS = "/v1/lora/available";

export interface LostStyle {
  name: string;
  path: string;
  scale: number;
}

export const lostStyles = new Store<readonly LostStyle[]>([]);

/** Styles that the form shows. */
let shown: readonly LostStyle[] = [];

/** Names of the styles that songs get. */
export function activeStyles({ enabled_adapters: names, scales }: AdapterStatus): readonly string[] {
  return names.filter((name) => scales[name] !== 0);
}

/** Call when the form shows the styles of `status`. @param isUsed whether its song gets them */
export function showStyles(status: AdapterStatus | null, isUsed: boolean): void {
  if (status === null) return;
  const isLoaded = ({ name }: LostStyle) => status.adapters.includes(name);
  lostStyles.set([...lostStyles.value, ...shown].filter((style) => !isLoaded(style)));
  shown = !isUsed
    ? []
    : activeStyles(status).map((name) => ({
        name,
        path: status.paths[name] ?? name,
        scale: status.scales[name] ?? 1,
      }));
}

/** Call when the user unloads a style, or does not need it again. */
export function forgetStyle(name: string): void {
  const others = (styles: readonly LostStyle[]) => styles.filter((style) => style.name !== name);
  shown = others(shown);
  lostStyles.set(others(lostStyles.value));
}

export async function reloadStyle({ name, path, scale }: LostStyle): Promise<void> {
  await patient.call("POST", "/v1/lora/load", { lora_path: path, adapter_name: name });
  if (scale !== 1) await patient.call("POST", "/v1/lora/scale", { scale, adapter_name: name });
}

/** @throws Error if the server no longer has a style that the form shows */
export async function checkStyles(): Promise<void> {
  const promised = shown;
  if (promised.length === 0) return;
  const status = await reread<AdapterStatus>(ADAPTER_STATUS);
  const lost = promised.find(({ name }) => !status?.adapters.includes(name));
  if (lost === undefined) return;
  throw new Error(
    t("{name} is no longer loaded. Press again for a song without this style.", { name: lost.name }),
  );
}
