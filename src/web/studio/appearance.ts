/** Colour scheme: the user's choice or, without one, the system's scheme. */
import { keepText, readText } from "./kept.js";

const ITEM = "carillon-theme";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export function storedTheme(): Theme {
  const stored = readText(ITEM);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

export function storeTheme(theme: Theme): void {
  keepText(ITEM, theme);
  applyTheme(theme);
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
