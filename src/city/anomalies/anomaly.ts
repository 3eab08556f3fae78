import type { JsonObject } from "../wire/json.js";

/** Something that looks unintended, as clients get it; the other keys depend on the type. */
export interface Anomaly extends JsonObject {
  readonly type: string;
}
