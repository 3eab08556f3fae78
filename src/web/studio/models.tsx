/** Menus that choose the model of each slot, and model downloads. */
import { useState } from "preact/hooks";
import { carillon, type ModelInventory, type ModelPull, patient } from "./api.js";
import { Button } from "./button.js";
import { useEndpoint } from "./endpoint.js";
import { t } from "./language.js";
import { type Attempt, WorkshopSection } from "./part.js";
import { PullProgress, usePull } from "./pull.js";
import { recordingTasks } from "./recording-tasks.js";
import { byteSize } from "./words.js";

export function Models({ attempt }: { attempt: Attempt }) {
  const [inventory, read] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const [loading, setLoading] = useState("");
  const load = (body: object, name: string) =>
    attempt(
      async () => {
        setLoading(name);
        try {
          await patient.call("POST", "/v1/init", body);
        } finally {
          setLoading("");
          await read();
        }
      },
      t("{model} is loaded.", { model: name }),
    );
  if (inventory === null) return null;
  const tasksOf = (model: string | null) =>
    inventory.models
      .find(({ name }) => name === model)
      ?.supported_task_types.map((type) => recordingTasks()[type]?.name ?? t("Make a song"))
      .join(", ");
  return (
    <WorkshopSection title={t("Models")}>
      {inventory.slots.map(({ slot, model }) => (
        <Choice
          key={slot}
          label={t("Slot {number}", { number: slot })}
          chosen={model}
          names={inventory.models.map(({ name }) => name)}
          isBusy={loading !== ""}
          help={tasksOf(model)}
          onChoose={(name) => load({ model: name, slot }, name)}
        />
      ))}
      <Choice
        label={t("Language model")}
        chosen={inventory.loaded_lm_model}
        names={inventory.lm_models.map(({ name }) => name)}
        isBusy={loading !== ""}
        onChoose={(name) => load({ init_llm: true, lm_model_path: name }, name)}
      />
      {loading !== "" && <p role="status">{t("Loading {model}…", { model: loading })}</p>}
      <Pull attempt={attempt} onPulled={read} />
    </WorkshopSection>
  );
}

interface ChoiceProps {
  label: string;
  chosen: string | null;
  names: string[];
  isBusy: boolean;
  help?: string | undefined;
  onChoose: (name: string) => void;
}

function Choice({ label, chosen, names, isBusy, help, onChoose }: ChoiceProps) {
  return (
    <label class="field">
      <span>
        {label} <span class="faint">{help}</span>
      </span>
      <select
        value={chosen ?? ""}
        disabled={isBusy}
        onChange={(event) => onChoose(event.currentTarget.value)}
      >
        {chosen === null && <option value="">{t("none loaded")}</option>}
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </label>
  );
}

function Pull({ attempt, onPulled }: { attempt: Attempt; onPulled: () => Promise<void> }) {
  const { answer, isRunning } = usePull(onPulled);
  const [name, setName] = useState("");
  const ask = (method: string, body?: object) =>
    attempt(() => carillon.call(method, "/v1/models/pull", body));
  // A gateway of a fleet has no models, and therefore no such endpoint.
  if (answer === null) return null;
  const { published, pull } = answer;
  return (
    <div class="field">
      <label for="pull">{t("Further models")}</label>
      <div class="row">
        <input
          id="pull"
          list="published"
          placeholder={t("Choose one, or owner/repository on Hugging Face")}
          title={t("Choose one, or owner/repository on Hugging Face")}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <datalist id="published">
          {published.map((model) => (
            <option key={model} value={model} />
          ))}
        </datalist>
        <Button
          disabled={isRunning || name.trim() === ""}
          onClick={() => ask("POST", { model: name.trim() })}
        >
          {t("Pull")}
        </Button>
        {isRunning && <Button onClick={() => ask("DELETE")}>{t("Cancel pull")}</Button>}
      </div>
      {isRunning && <PullProgress pull={pull} />}
      {pull !== null && (
        <p class={pull.state === "failed" ? "failed" : "faint"} role="status">
          {wordsOf(pull)}
        </p>
      )}
    </div>
  );
}

function wordsOf({
  model,
  state,
  done_bytes: done,
  total_bytes: total,
  file,
  ...rest
}: NonNullable<ModelPull["pull"]>): string {
  switch (state) {
    case "running":
      return total === 0
        ? t("Looking for {model}…", { model })
        : t("{file} · {done} of {total}", { file, done: byteSize(done), total: byteSize(total) });
    case "completed":
      return rest.new_folders.length === 0
        ? t("{model} was already installed.", { model })
        : t("{model} is installed. Choose it above.", { model });
    case "cancelled":
      return t(
        "The download of {model} was cancelled. The partial download is kept: pull it again to resume.",
        { model },
      );
    case "failed":
      return rest.error ?? t("{model} could not be pulled.", { model });
  }
}
