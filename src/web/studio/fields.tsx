/** Form fields of parameters; an empty one leaves its parameter to the service. */
import type { Parameters } from "./api.js";

interface FieldProps {
  label: string;
  name: string;
  values: Parameters;
  set: (change: Parameters) => void;
  /** What an empty field means. */
  open?: string;
  help?: string;
}

interface NumberFieldProps extends FieldProps {
  unit?: string;
  min?: number | undefined;
  max?: number | undefined;
  step?: number | "any";
}

export function NumberField(props: NumberFieldProps) {
  const { label, unit, name, min, max, step = 1, open = "auto", values, set, help } = props;
  return (
    <label class="field" title={help}>
      <span>
        {label} {unit && <span class="faint">{unit}</span>}
      </span>
      <input
        type="number"
        name={name}
        min={min}
        max={max}
        step={step}
        placeholder={open}
        value={values[name] === undefined ? "" : Number(values[name])}
        onInput={(event) => {
          const { value } = event.currentTarget;
          set({ [name]: value === "" ? null : Number(value) });
        }}
      />
    </label>
  );
}

interface SelectFieldProps extends FieldProps {
  /** Values, or values and how they are written. */
  options: readonly (string | [string, string])[];
}

export function SelectField({ label, name, options, open = "auto", values, set, help }: SelectFieldProps) {
  const pairs = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));
  const value = String(values[name] ?? "");
  return (
    <label class="field" title={help}>
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => set({ [name]: event.currentTarget.value })}>
        <option value="">{open}</option>
        {value !== "" && !pairs.some(([option]) => option === value) && (
          <option value={value}>{value}</option>
        )}
        {pairs.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function TextField({ label, name, open = "", values, set, help }: FieldProps) {
  const value = values[name];
  return (
    <label class="field wide" title={help}>
      <span>{label}</span>
      <input
        name={name}
        placeholder={open}
        value={Array.isArray(value) ? value.join(", ") : String(value ?? "")}
        onInput={(event) => set({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}
