/** Fields for all parameters that have no other control in the form. Generated from GET /openapi.json. */
import { useEffect, useState } from "preact/hooks";
import { carillon, type ModelInventory, type Parameters } from "./api.js";
import { useEndpoint } from "./endpoint.js";
import { Group, NumberField, SelectField, TextField } from "./fields.js";
import { language, loadHelp, t } from "./language.js";
import { errorInWords } from "./notes.js";
import { parameterName } from "./parameters.js";

/**
 * Parameters without a generated field, because the form has another control for them, or because they have
 * no effect (`lm_backend`).
 */
const PLAIN_FIELDS = new Set(
  `prompt lyrics thinking get_lrc vocal_language audio_format bpm key_scale time_signature audio_duration batch_size task_type
   src_audio_path reference_audio_path track_name track_classes repainting_start repainting_end audio_cover_strength
   audio_code_string use_audio_codes model sample_mode sample_query repainting_windows lm_backend`.split(
    /\s+/,
  ),
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

const PLANNER = /^(lm_|use_cot|constrained|allow_lm|use_format)/;

/** Groups of fields. A field belongs to the first group whose pattern matches its parameter name. */
const GROUPS: readonly (readonly [title: () => string, names: RegExp])[] = [
  [() => t("Every song"), /^(seed|use_random_seed|inference_steps|instrumental)$/],
  [() => t("Guidance"), /^(guidance|cfg|use_adg|eta|momentum|norm_threshold|dcw)/],
  [
    () => t("Source"),
    /^(repaint|chunk_mask|cover|src_|ref_|instruction|global_caption|extract_|full_analysis)/,
  ],
  [() => t("File"), /^(mp3|sample_rate|normalization|enable_norm|loudness|peak|fade|return_|get_scores)/],
  [() => t("Model"), /^(shift|timesteps|free_|infer_|velocity|latent|loras)/],
  [() => t("Planner"), PLANNER],
  [() => t("Other settings"), /./],
];

function grouped(schemas: readonly [string, Schema][]): [string, [string, Schema][]][] {
  const groups = GROUPS.map(([title]): [string, [string, Schema][]] => [title(), []]);
  for (const entry of schemas) {
    const index = GROUPS.findIndex(([, names]) => names.test(entry[0]));
    groups[index]?.[1].push(entry);
  }
  return groups.filter(([, fields]) => fields.length > 0);
}

interface AdvancedProps {
  values: Parameters;
  set: (change: Parameters) => void;
}

export function AdvancedFields({ values, set }: AdvancedProps) {
  const [isOpen, setOpen] = useState(false);
  const [schemas, setSchemas] = useState<[string, Schema][]>([]);
  const [help, setHelp] = useState<Readonly<Record<string, string>>>({});
  const [failure, setFailure] = useState("");
  useEffect(() => {
    if (isOpen) void loadHelp().then(setHelp);
  }, [isOpen, language()]);
  useEffect(() => {
    if (!isOpen || schemas.length > 0) return;
    carillon.call<Description>("GET", "/openapi.json").then(
      ({ paths }) => {
        const schema = paths["/release_task"]?.post.requestBody.content["application/json"]?.schema;
        const all = Object.entries(schema?.properties ?? {});
        setSchemas(all.filter(([name]) => !PLAIN_FIELDS.has(name)));
        setFailure("");
      },
      (error: unknown) => setFailure(errorInWords(error)),
    );
  }, [isOpen]);
  const [inventory] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const hasPlanner = (inventory?.lm_models.length ?? 0) > 0;
  const shown = hasPlanner ? schemas : schemas.filter(([name]) => !PLANNER.test(name));
  const changed = schemas.filter(([name]) => values[name] !== undefined).length;
  return (
    <Group
      icon="dials"
      title={t("All settings")}
      summary={changed > 0 ? t("{count} changed", { count: changed }) : ""}
      onToggle={setOpen}
    >
      {failure !== "" && <p class="failed">{failure}</p>}
      {grouped(shown).map(([title, fields]) => (
        <fieldset class="settings" key={title}>
          <legend>{title}</legend>
          <div class="grid">
            {fields.map(([name, schema]) => (
              <div key={name}>
                <SchemaField name={name} schema={schema} values={values} set={set} />
                <p class="faint help">{help[name] ?? schema.description?.replaceAll("`", "")}</p>
              </div>
            ))}
          </div>
        </fieldset>
      ))}
    </Group>
  );
}

function SchemaField({ name, schema, values, set }: { name: string; schema: Schema } & AdvancedProps) {
  const { default: fallback } = schema;
  const options = schema.anyOf?.filter(({ type }) => type !== "null") ?? [schema];
  const { type, enum: choices, minimum, maximum } = options[0] ?? schema;
  const kinds = Array.isArray(type) ? type.filter((kind) => kind !== "null") : [type];
  const isOpen = fallback === null || fallback === undefined || fallback === "" || String(fallback) === "";
  const common = {
    label: parameterName(name),
    name,
    values,
    set,
    placeholder: isOpen ? t("auto") : String(fallback),
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
  placeholder: string;
}

function FlagField({ label, name, placeholder, values, set }: FlagFieldProps) {
  const written = { ...values, [name]: values[name] === undefined ? "" : values[name] ? "yes" : "no" };
  const inWords =
    placeholder === "true" ? t("yes (default)") : placeholder === "false" ? t("no (default)") : placeholder;
  return (
    <SelectField
      label={label}
      name={name}
      options={[
        ["yes", t("yes")],
        ["no", t("no")],
      ]}
      placeholder={inWords}
      values={written}
      set={(change) => set({ [name]: change[name] === "" ? null : change[name] === "yes" })}
    />
  );
}
