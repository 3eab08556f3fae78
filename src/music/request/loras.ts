/** The parameter `loras`: adapters that a request uses. */
import { z } from "zod";
import { ADAPTER_SCALES } from "../../engine/adapters.js";
import type { SongAdapter } from "../../engine/types.js";
import {
  type Fields,
  finiteNumber,
  oneOf,
  refuse,
  refusePart,
  textOrNull,
  within,
} from "../../parameters.js";
import type { StoredAdapter } from "../storage/adapter-storage.js";
import { tryParseClientJson } from "./json.js";

/** An adapter as sent by the client, by path or by the name of a loaded adapter. */
export interface Lora {
  path?: string | null | undefined;
  name?: string | null | undefined;
  /** Strength; default 1. */
  scale?: number | undefined;
  dora_epsilon?: SongAdapter["doraEpsilon"] | undefined;
}

/** Adapter of a request, with defaults. Until the task is accepted, `path` or `name` may be null. */
export interface RequestedAdapter extends Pick<SongAdapter, "scale" | "doraEpsilon"> {
  path: string | null;
  name: string | null;
  /** Files of the adapter in the object store. Only a fleet sets this field, when it accepts the task. */
  stored?: StoredAdapter;
}

export const adapterScale = within(finiteNumber, ADAPTER_SCALES.min, ADAPTER_SCALES.max);

/** Data type of the epsilon that LyCORIS' DoRA adds to norms. */
export const doraEpsilon = oneOf(["float32", "bfloat16"]);

const MAX_LORAS = 8;

const lora = z.strictObject(
  {
    path: textOrNull.nullish(),
    name: textOrNull.nullish(),
    scale: adapterScale.optional(),
    dora_epsilon: doraEpsilon.optional(),
  },
  {
    error: ({ code }) =>
      code === "invalid_type" ? 'must be an object with "path" or "name", and "scale"' : undefined,
  },
);

/** Accepts a list of adapter objects, or JSON text of such a list. */
export const loraList = z
  .unknown()
  .transform((value, context): Lora[] => {
    const list = typeof value === "string" ? tryParseClientJson(value, "loras") : value;
    if (!Array.isArray(list)) {
      return refuse(context, 'must be a list of {"path" or "name", "scale"}, or JSON text of one', value);
    }
    if (list.length > MAX_LORAS) {
      return refusePart(context, `must hold at most ${MAX_LORAS} adapters`, list.length);
    }
    const loras: Lora[] = [];
    for (const [index, item] of list.entries()) {
      const { data, error } = lora.safeParse(item);
      if (data === undefined) {
        const [issue] = error.issues as [z.core.$ZodIssue];
        const path = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : issue.path;
        const part = path.reduce((object, key) => object[key], item);
        return refusePart(context, [`[${index}]`, ...issue.path, issue.message].join(" "), part);
      }
      if (!data.path && !data.name) {
        return refusePart(context, `[${index}] must have a path, or the name of a loaded adapter`, data.path);
      }
      if (loras.some(({ path, name }) => path === data.path && name === data.name)) {
        return refusePart(
          context,
          `[${index}] names the same adapter as an earlier one`,
          data.path ?? data.name,
        );
      }
      loras.push(data);
    }
    return loras;
  })
  .meta({
    type: ["array", "string"],
    items: {
      type: "object",
      properties: {
        path: { type: "string" },
        name: { type: "string" },
        scale: { type: "number", minimum: ADAPTER_SCALES.min, maximum: ADAPTER_SCALES.max },
        dora_epsilon: { type: "string", enum: ["float32", "bfloat16"] },
      },
      additionalProperties: false,
    },
    maxItems: MAX_LORAS,
  });

export function toRequestedAdapter({ path, name, scale = 1, dora_epsilon }: Lora): RequestedAdapter {
  return { path: path ?? null, name: name ?? null, scale, doraEpsilon: dora_epsilon ?? "float32" };
}

/** Converts an adapter back to the fields of a request body. */
export function loraFields({ path, name, scale, doraEpsilon }: RequestedAdapter): Fields {
  return { path, name, scale, dora_epsilon: doraEpsilon };
}
