/** Buttons that act, and never submit the form around them. */
import type { ComponentProps } from "preact";
import { useState } from "preact/hooks";
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

/** Button that deletes at the second press. @param sure its text after the first one */
export function DeleteButton({
  sure,
  onDelete,
  ...rest
}: ButtonProps & { sure: string; onDelete: () => void }) {
  const [isSure, setSure] = useState(false);
  return (
    <Button
      class={isSure ? "danger end" : "plain end"}
      icon="trash"
      onClick={() => (isSure ? onDelete() : setSure(true))}
      {...rest}
    >
      {isSure ? sure : t("Delete")}
    </Button>
  );
}
