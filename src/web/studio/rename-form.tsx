import { t } from "./language.js";

interface RenameProps {
  class?: string;
  label: string;
  maxLength: number;
  name: string;
  /** Called with the new name, or without one if the user gives up. The form stays open with it until its owner closes it. */
  onDone: (name?: string) => void;
}

/** Field in place of a name, to change it. */
export function RenameForm({ class: classes = "row", label, maxLength, name, onDone }: RenameProps) {
  return (
    <form
      class={classes}
      onSubmit={(event) => {
        event.preventDefault();
        onDone(String(new FormData(event.currentTarget).get("name") ?? "").trim());
      }}
    >
      <input
        name="name"
        dir="auto"
        aria-label={label}
        maxLength={maxLength}
        defaultValue={name}
        ref={(input) => input?.focus()}
        onKeyDown={(event) => event.key === "Escape" && onDone()}
      />
      <button type="submit">{t("Save")}</button>
    </form>
  );
}
