/** The bodies of the adapter endpoints (reference/music-http.md 7.6). */
import { z } from "zod";
import { parameter } from "../../parameters/names.js";
import { finiteNumber, flag, oneOf, requiredText, textOrNull, within } from "../../parameters/values.js";
import { FieldSources, type Fields } from "./fields.js";
import { parseObject } from "./validate.js";

const adapterName = parameter(["adapter_name", "name"], textOrNull.nullable().default(null));

const loadSchema = z.object({
  path: parameter(["lora_path", "path"], requiredText),
  /** Null: the last part of the path. */
  name: adapterName,
  /** Of LyCORIS' DoRA: float32 as in training; bfloat16 to sound as in programs that cast adapters. */
  doraEpsilon: parameter("dora_epsilon", oneOf(["float32", "bfloat16"]).default("float32")),
});

const toggleSchema = z.object({ enabled: parameter(["use_lora", "enabled"], flag) });

const scaleSchema = z.object({
  scale: parameter(["scale", "lora_scale"], within(finiteNumber, 0, 1)),
  /** Null: the active adapter. */
  name: adapterName,
});

export type AdapterLoad = z.output<typeof loadSchema>;
export type AdapterScale = z.output<typeof scaleSchema>;

/** @throws RequestError naming the field at fault, as all of these */
export function parseAdapterLoad(fields: Fields): AdapterLoad {
  return parse(loadSchema, fields);
}

export function parseAdapterToggle(fields: Fields): boolean {
  return parse(toggleSchema, fields).enabled;
}

export function parseAdapterScale(fields: Fields): AdapterScale {
  return parse(scaleSchema, fields);
}

function parse<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>, fields: Fields) {
  return parseObject(schema, new FieldSources(fields), "refuse", []);
}
