/** Buttons that act, and never submit the form around them. */
import type { ComponentProps } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.js";
import { t } from "./language.js";

interface ButtonProps extends Omit<ComponentProps<"button">, "icon" | "class"> {
  class?: string;
  icon?: IconName | undefined;
}

export function Button({ icon, children, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Button that shows an icon or one character instead of its label. */
export function RoundButton({ label, class: more = "", ...rest }: ButtonProps & { label: string }) {
  return <Button class={`plain round ${more}`} aria-label={label} {...rest} />;
}

/** The presses of a double click, or of a held key, follow sooner. */
const PRESSES_APART_MS = 700;
const ASKING_MS = 8000;

interface DeleteButtonProps extends ButtonProps {
  label?: string;
  /** Text after the first press. */
  sure: string;
  onDelete: () => void;
}

/**
 * Button that deletes at the second press, unless it follows too soon: a double click deletes nothing. After Escape, a
 * while, or when the focus has left, the button asks again.
 */
export function DeleteButton({
  class: more = "",
  label = t("Delete"),
  sure,
  onDelete,
  ...rest
}: DeleteButtonProps) {
  const [asked, setAsked] = useState<{ isReady: boolean } | null>(null);
  useEffect(() => {
    if (asked === null) return;
    const next = asked.isReady ? null : { isReady: true };
    const timer = setTimeout(() => setAsked(next), asked.isReady ? ASKING_MS : PRESSES_APART_MS);
    return () => clearTimeout(timer);
  }, [asked]);
  return (
    <Button
      class={asked === null ? more : `${more} danger`}
      aria-disabled={asked?.isReady === false}
      onClick={(event) => {
        // Safari does not focus a pressed button, so the focus could not leave it.
        event.currentTarget.focus();
        setAsked(asked?.isReady ? null : { isReady: false });
        if (asked?.isReady) onDelete();
      }}
      onBlur={() => setAsked(null)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || asked === null) return;
        event.stopPropagation();
        setAsked(null);
      }}
      {...rest}
    >
      {asked === null ? label : sure}
    </Button>
  );
}
