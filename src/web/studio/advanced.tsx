/** Fields for all other parameters, generated from GET /openapi.json. */
import { useEffect, useState } from "preact/hooks";
import { call, type Parameters } from "./api.js";
import { Group, NumberField, SelectField, TextField } from "./fields.js";
import { t } from "./language.js";

/** Parameters that have their own fields in the form. */
const PLAIN_FIELDS = new Set(
  `prompt lyrics thinking get_lrc vocal_language audio_format bpm key_scale time_signature audio_duration batch_size task_type
   src_audio_path reference_audio_path track_name track_classes repainting_start repainting_end audio_cover_strength
   audio_code_string use_audio_codes model`.split(/\s+/),
);

interface Schema {
  type?: string | string[];
  description?: string;
  default?: unknown;
  enum?: (string | number)[];
  minimum?: number;
  maximum?: number;
  anyOf?: Schema[];
}

interface Description {
  paths: Record<
    string,
    { post: { requestBody: { content: Record<string, { schema: { properties: Record<string, Schema> } }> } } }
  >;
}

interface AdvancedProps {
  values: Parameters;
  set: (change: Parameters) => void;
}

export function Advanced({ values, set }: AdvancedProps) {
  const [isOpen, setOpen] = useState(false);
  const [schemas, setSchemas] = useState<[string, Schema][]>([]);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    if (!isOpen || schemas.length > 0) return;
    call<Description>("GET", "/openapi.json").then(
      ({ paths }) => {
        const schema = paths["/release_task"]?.post.requestBody.content["application/json"]?.schema;
        const all = Object.entries(schema?.properties ?? {});
        setSchemas(all.filter(([name]) => !PLAIN_FIELDS.has(name)));
        setFailure("");
      },
      (error: Error) => setFailure(error.message),
    );
  }, [isOpen]);
  const changed = schemas.filter(([name]) => values[name] !== undefined).length;
  return (
    <Group
      icon="dials"
      title={t("All settings")}
      summary={changed > 0 ? t("{count} changed", { count: changed }) : ""}
      onToggle={setOpen}
    >
      {failure !== "" && <p class="failed">{failure}</p>}
      <div class="grid">
        {schemas.map(([name, schema]) => (
          <SchemaField key={name} name={name} schema={schema} values={values} set={set} />
        ))}
      </div>
    </Group>
  );
}

function SchemaField({ name, schema, values, set }: { name: string; schema: Schema } & AdvancedProps) {
  const { description: help = "", default: fallback } = schema;
  const options = schema.anyOf?.filter(({ type }) => type !== "null") ?? [schema];
  const { type, enum: choices, minimum, maximum } = options[0] ?? schema;
  const kinds = Array.isArray(type) ? type.filter((kind) => kind !== "null") : [type];
  const isOpen = fallback === null || fallback === undefined || fallback === "" || String(fallback) === "";
  const common = {
    label: wordsOf(name),
    name,
    values,
    set,
    open: isOpen ? t("auto") : String(fallback),
    help,
  };
  if (kinds[0] === "boolean") return <FlagField {...common} />;
  if (choices !== undefined)
    return <SelectField {...common} options={choices.map(String).filter((choice) => choice !== "")} />;
  if (kinds.length === 1 && (kinds[0] === "integer" || kinds[0] === "number")) {
    return <NumberField {...common} min={minimum} max={maximum} step={kinds[0] === "integer" ? 1 : "any"} />;
  }
  return <TextField {...common} />;
}

interface FlagFieldProps extends AdvancedProps {
  label: string;
  name: string;
  open: string;
  help: string;
}

function FlagField({ label, name, open, help, values, set }: FlagFieldProps) {
  const written = { ...values, [name]: values[name] === undefined ? "" : values[name] ? "yes" : "no" };
  const inWords = open === "true" ? t("yes (default)") : open === "false" ? t("no (default)") : open;
  return (
    <SelectField
      label={label}
      name={name}
      options={[
        ["yes", t("yes")],
        ["no", t("no")],
      ]}
      open={inWords}
      help={help}
      values={written}
      set={(change) => set({ [name]: change[name] === "" ? null : change[name] === "yes" })}
    />
  );
}

function wordsOf(name: string): string {
  const words = name
    .replaceAll("_", " ")
    .replace(/\blm\b/g, "LM")
    .replace(/\bcfg\b/g, "CFG")
    .replace(/\badg\b/g, "ADG");
  return words[0]?.toUpperCase() + words.slice(1);
}
