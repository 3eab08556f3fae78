/** Page header: name, connection state and model; buttons for the key and the appearance; language menu. */

import { useState } from "preact/hooks";
import type { ModelInventory } from "./api.js";
import { storedTheme, storeTheme, THEMES, type Theme } from "./appearance.js";
import { RoundButton } from "./button.js";
import { useEndpoint } from "./endpoint.js";
import { ForgetKey } from "./key.js";
import { LANGUAGES, language, t } from "./language.js";
import { type Connection, connection, refresh } from "./live.js";
import { useStore } from "./store.js";
import { MODELS_ADDRESS, type View } from "./views.js";

interface HeaderProps {
  view: View;
  onLanguage: (code: string) => void;
}

export function Header({ view, onLanguage }: HeaderProps) {
  const state = useStore(connection);
  const [inventory] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const model = state === "locked" ? "" : (inventory?.default_model ?? "");
  return (
    <header>
      <h1>
        <img src="/studio/icon.svg" alt="" />
        Carillon
      </h1>
      <span class={`connection ${state}`} role="status">
        {wordsOf(state)}
      </span>
      {model !== "" && <span class="faint model">{model}</span>}
      <nav aria-label={t("Page")}>
        <ForgetKey onForget={refresh} />
        {state !== "locked" && (
          <a href={MODELS_ADDRESS} aria-current={view === "models" ? "page" : undefined}>
            {t("Models and adapters")}
          </a>
        )}
        <a href="/docs">{t("API")}</a>
        <select
          class="language"
          aria-label={t("Page language")}
          value={language()}
          onChange={(event) => onLanguage(event.currentTarget.value)}
        >
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <option key={code} value={code} lang={code}>
              {name}
            </option>
          ))}
        </select>
        <Appearance />
      </nav>
    </header>
  );
}

/** Button that switches to the next colour scheme: system, light, dark. */
function Appearance() {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const names = { system: t("as the system"), light: t("light"), dark: t("dark") };
  const following = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] as Theme;
  return (
    <RoundButton
      icon={theme}
      label={t("Appearance: {theme}", { theme: names[theme] })}
      title={t("Appearance: {theme}", { theme: names[theme] })}
      onClick={() => {
        storeTheme(following);
        setTheme(following);
      }}
    />
  );
}

function wordsOf(state: Connection): string {
  switch (state) {
    case "connecting":
      return t("Connecting…");
    case "online":
      return t("Online");
    case "offline":
      return t("Offline: trying again");
    case "locked":
      return t("Key needed");
  }
}
