/** Adapters of the default model: load, switch, strength, unload. */
import { useState } from "preact/hooks";
import { type AdapterStatus, type AvailableAdapters, patient } from "./api.js";
import { Button } from "./button.js";
import { useEndpoint } from "./endpoint.js";
import { t } from "./language.js";
import { type Attempt, WorkshopSection } from "./part.js";
import { ADAPTER_STATUS, forgetStyle } from "./styles.js";

/** Value of the menu for a file that the server does not list. */
const OTHER = " ";

/** Name of a style in place of its path: trained styles lie in a folder `final` of their own. */
function styleName(path: string): string {
  return path.replace(/\/final$/, "");
}

export function Adapters({ attempt }: { attempt: Attempt }) {
  const [status] = useEndpoint<AdapterStatus>(ADAPTER_STATUS);
  const [available] = useEndpoint<AvailableAdapters>("/v1/lora/available");
  const [chosen, setChosen] = useState("");
  const [typed, setTyped] = useState("");
  const names = available?.adapters ?? [];
  const isTyped = names.length === 0 || chosen === OTHER;
  const path = isTyped ? typed.trim() : chosen;
  const change = (endpoint: string, body: object, done = "") =>
    attempt(() => patient.call("POST", `/v1/lora/${endpoint}`, body), done);
  return (
    <WorkshopSection title={t("Adapters")}>
      <div class="row">
        {names.length > 0 && (
          <select
            aria-label={t("Style")}
            value={chosen}
            onChange={(event) => setChosen(event.currentTarget.value)}
          >
            <option value="">{t("Choose a style")}</option>
            {names.map((each) => (
              <option key={each} value={each}>
                {styleName(each)}
              </option>
            ))}
            <option value={OTHER}>{t("Another file on the server")}</option>
          </select>
        )}
        {isTyped && (
          <input
            aria-label={t("Adapter on the server")}
            placeholder={t("Path on the server, such as zydeco/final")}
            title={t("Path on the server, such as zydeco/final")}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        )}
        <Button
          disabled={path === ""}
          onClick={() => change("load", { lora_path: path }, t("The adapter is loaded."))}
        >
          {t("Load adapter")}
        </Button>
      </div>
      {status?.adapters.map((adapter_name) => (
        <div class="row" key={adapter_name}>
          <label class="check">
            <input
              type="checkbox"
              checked={status.enabled_adapters.includes(adapter_name)}
              onChange={(event) => change("toggle", { use_lora: event.currentTarget.checked, adapter_name })}
            />
            {adapter_name}
          </label>
          <label class="check">
            {t("Strength")}
            <input
              type="range"
              min={-2}
              max={2}
              step={0.05}
              value={status.scales[adapter_name]}
              onChange={(event) =>
                change("scale", { scale: Number(event.currentTarget.value), adapter_name })
              }
            />
            <output>{status.scales[adapter_name]}</output>
          </label>
          <Button
            class="end"
            onClick={() => {
              forgetStyle(adapter_name);
              void change("unload", { adapter_name }, t("Adapter unloaded."));
            }}
          >
            {t("Unload")}
          </Button>
        </div>
      ))}
    </WorkshopSection>
  );
}
