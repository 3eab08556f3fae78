/** Page header: name, connection state and model; buttons for the key and the appearance; language menu. */
import { useEffect, useState } from "preact/hooks";
import { carillon } from "./api.js";
import { RoundButton } from "./icons.js";
import { ForgetKey } from "./key.js";
import { LANGUAGES, language, t } from "./language.js";
import { type LiveData, watchChanges } from "./live.js";
import { applyTheme, storedTheme, THEMES, type Theme } from "./theme.js";

interface HeaderProps {
  live: LiveData;
  onLanguage: (code: string) => void;
}

export function Header({ live, onLanguage }: HeaderProps) {
  const [model, setModel] = useState("");
  useEffect(() => {
    if (live.connection !== "online") return;
    const read = () =>
      void carillon.call<{ default_model: string }>("GET", "/v1/models").then(
        (models) => setModel(models.default_model),
        () => setModel(""),
      );
    read();
    return watchChanges(read);
  }, [live.connection]);
  return (
    <header>
      <h1>
        <img src="/studio/icon.svg" alt="" />
        Carillon
      </h1>
      <span class={`connection ${live.connection}`} role="status">
        {wordsOf(live.connection)}
      </span>
      {model !== "" && <span class="faint model">{model}</span>}
      <nav aria-label={t("Page")}>
        <ForgetKey onForget={live.refresh} />
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
        applyTheme(following);
        setTheme(following);
      }}
    />
  );
}

function wordsOf(connection: LiveData["connection"]): string {
  switch (connection) {
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
