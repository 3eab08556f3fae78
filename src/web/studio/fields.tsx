/** Form fields for request parameters. An empty field leaves the default to the service. */
import type { ComponentChildren, Ref } from "preact";
import type { Parameters } from "./api.js";
import { Icon, type IconName } from "./icons.js";
import { t } from "./language.js";

interface GroupProps {
  icon: IconName;
  title: string;
  /** Summary of the fields in the group, also shown while the group is closed. */
  summary: string;
  children: ComponentChildren;
  onToggle?: (isOpen: boolean) => void;
  field?: Ref<HTMLDetailsElement>;
}

/** Collapsible group of fields. */
export function Group({ icon, title, summary, children, onToggle, field }: GroupProps) {
  return (
    <details class="group" ref={field ?? null} onToggle={(event) => onToggle?.(event.currentTarget.open)}>
      <summary>
        <Icon name={icon} />
        {title} <span class="faint">{summary}</span>
      </summary>
      {children}
    </details>
  );
}

interface FieldProps {
  label: string;
  name: string;
  values: Parameters;
  set: (change: Parameters) => void;
  /** Text in the empty field: the default, or what to enter. */
  placeholder?: string;
}

interface NumberFieldProps extends FieldProps {
  unit?: string;
  min?: number | undefined;
  max?: number | undefined;
  step?: number | "any";
}

export function NumberField(props: NumberFieldProps) {
  const { label, unit, name, min, max, step = 1, placeholder = t("auto"), values, set } = props;
  return (
    <label class="field">
      <span>
        {label} {unit && <span class="faint">{unit}</span>}
      </span>
      <input
        type="number"
        name={name}
        min={min}
        max={max}
        step={step}
        placeholder={placeholder}
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
  /** Options of the menu: a value, or a pair of value and label. */
  options: readonly (string | [string, string])[];
}

export function SelectField({
  label,
  name,
  options,
  placeholder = t("auto"),
  values,
  set,
}: SelectFieldProps) {
  const pairs = options.map((option) => (typeof option === "string" ? ([option, option] as const) : option));
  const value = String(values[name] ?? "");
  return (
    <label class="field">
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => set({ [name]: event.currentTarget.value })}>
        {placeholder !== "" && <option value="">{placeholder}</option>}
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

interface TextFieldProps extends FieldProps {
  field?: Ref<HTMLInputElement>;
}

export function TextField({ label, name, placeholder = "", values, set, field = null }: TextFieldProps) {
  const value = values[name];
  return (
    <label class="field wide">
      <span>{label}</span>
      <input
        ref={field}
        name={name}
        dir="auto"
        placeholder={placeholder}
        title={placeholder}
        value={Array.isArray(value) ? value.join(", ") : String(value ?? "")}
        onInput={(event) => set({ [name]: event.currentTarget.value })}
      />
    </label>
  );
}
