/** Adapters of the default model: load, switch, strength, unload. */
import { useState } from "preact/hooks";
import { type AdapterStatus, type AvailableAdapters, patient } from "./api.js";
import { Button } from "./button.js";
import { useEndpoint } from "./endpoint.js";
import { language, t } from "./language.js";
import { type Attempt, WorkshopSection } from "./part.js";
import { ADAPTER_STATUS, forgetStyle, SAVED_ADAPTERS } from "./styles.js";

export function Adapters({ attempt }: { attempt: Attempt }) {
  const [status] = useEndpoint<AdapterStatus>(ADAPTER_STATUS);
  const [available] = useEndpoint<AvailableAdapters>(SAVED_ADAPTERS);
  const [typed, setTyped] = useState("");
  const change = (endpoint: string, body: object, done = "") =>
    attempt(() => patient.call("POST", `/v1/lora/${endpoint}`, body), done);
  const load = (body: object) => change("load", body, t("The adapter is loaded."));
  const loaded = Object.values(status?.paths ?? {});
  const saved = available?.styles.filter(({ path }) => !loaded.includes(path)) ?? [];
  return (
    <WorkshopSection title={t("Adapters")}>
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
      {saved.length > 0 && (
        <ul class="saved-styles" aria-label={t("Styles")}>
          {saved
            .toSorted((one, other) => other.saved_time - one.saved_time)
            .map(({ name, path, saved_time: time }) => (
              <li class="row" key={path}>
                {name} <span class="faint">{dateOf(time)}</span>
                <Button
                  class="end"
                  aria-label={t("Load {name}", { name })}
                  onClick={() => load({ lora_path: path, adapter_name: name })}
                >
                  {t("Load")}
                </Button>
              </li>
            ))}
        </ul>
      )}
      <div class="row">
        <input
          aria-label={t("Adapter on the server")}
          placeholder={t("Path on the server, such as zydeco/final")}
          title={t("Path on the server, such as zydeco/final")}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <Button disabled={typed.trim() === ""} onClick={() => load({ lora_path: typed.trim() })}>
          {t("Load adapter")}
        </Button>
      </div>
    </WorkshopSection>
  );
}

function dateOf(unixSeconds: number): string {
  const format = new Intl.DateTimeFormat(language(), { dateStyle: "medium", timeStyle: "short" });
  return format.format(unixSeconds * 1000);
}
