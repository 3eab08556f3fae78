import { useEffect } from "preact/hooks";
import { t } from "./language.js";

interface RenameProps {
  class?: string;
  label: string;
  maxLength: number;
  name: string;
  /** Id of the button that opened the form, which gets the focus back. */
  opener: string;
  /** Called with the new name, or without one if the user gives up. The form stays open with it until its owner closes it. */
  onDone: (name?: string) => void;
}

/** Field in place of a name, to change it. */
export function RenameForm({ class: classes = "row", label, maxLength, name, opener, onDone }: RenameProps) {
  useEffect(
    () => () => {
      // The button may be drawn only after the form is gone.
      requestAnimationFrame(() => {
        if (document.activeElement === document.body) document.getElementById(opener)?.focus();
      });
    },
    [],
  );
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
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          // It must not close the menu that the form was opened from.
          event.stopPropagation();
          onDone();
        }}
      />
      <button type="submit">{t("Save")}</button>
    </form>
  );
}
