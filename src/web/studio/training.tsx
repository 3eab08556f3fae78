/**
 * Trains an adapter on dropped songs or on a folder of the server; then makes the same song without and with
 * the adapter.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { carillon, type Parameters, patient, type TrainingStatus } from "./api.js";
import { Button } from "./button.js";
import { reread } from "./endpoint.js";
import { NumberField, TextField } from "./fields.js";
import { t } from "./language.js";
import type { Attempt } from "./part.js";
import { useStore } from "./store.js";
import { SAVED_ADAPTERS } from "./styles.js";
import {
  checkCaptions,
  type InterruptedRun,
  isTrained,
  nameFault,
  resume,
  styleNameOf,
  train,
  trainingForm,
  trainingStage,
} from "./train.js";
import { makeComparisonPair, TrainingSongs } from "./training-songs.js";
import { remainingTime } from "./words.js";

const POLL_MS = 1000;

export function Training({ attempt }: { attempt: Attempt }) {
  const form = useStore(trainingForm);
  const stage = useStore(trainingStage);
  const [status, setStatus] = useState<TrainingStatus | null>(null);
  /** Name of the style that training would replace, while the page asks; "" otherwise. */
  const [replaced, setReplaced] = useState("");
  const { values, songs } = form;
  const nameField = useRef<HTMLInputElement>(null);
  const set = (change: Parameters) => {
    setReplaced("");
    nameField.current?.setCustomValidity("");
    trainingForm.set({ values: { ...values, ...change }, songs });
  };
  const read = () =>
    carillon.call<TrainingStatus>("GET", "/v1/training/status").then(setStatus, () => setStatus(null));
  useEffect(() => {
    void read();
    const timer = setInterval(read, POLL_MS);
    return () => clearInterval(timer);
  }, []);
  const isTraining = status?.is_training === true;
  useEffect(() => {
    // The end of a run adds an adapter.
    if (!isTraining) void reread(SAVED_ADAPTERS);
  }, [isTraining]);
  const isBusy = stage !== "" || isTraining;
  const trained = isTraining ? null : status?.output_path;
  const start = () => {
    setReplaced("");
    return attempt(async () => {
      await train(form);
      await read();
    }, t("Training has started."));
  };
  const startOrAsk = async () => {
    const name = styleNameOf(form);
    nameField.current?.setCustomValidity(nameFault(name));
    if (nameField.current?.reportValidity() === false) return;
    let isReplacement = false;
    trainingStage.set(t("Starting…"));
    const isChecked = await attempt(async () => {
      checkCaptions(form);
      isReplacement = await isTrained(name);
    });
    if (isChecked && !isReplacement) return void (await start());
    trainingStage.set("");
    if (isReplacement) setReplaced(name);
  };
  const fields = { values, set };
  return (
    <section class="part" aria-label={t("Training")}>
      <h3>{t("Train an adapter")}</h3>
      <TrainingSongs songs={songs} onChange={(songs) => trainingForm.set({ values, songs })} />
      <div class="grid">
        {songs.length === 0 && (
          <TextField
            label={t("Folder of recordings")}
            name="folder"
            placeholder={t("songs, in the training folder")}
            {...fields}
          />
        )}
        <TextField label={t("Name")} name="name" placeholder="my-style" field={nameField} {...fields} />
        <TextField
          label={t("What they sound like")}
          name="caption"
          placeholder={t("for recordings without a caption beside them")}
          {...fields}
        />
        <NumberField label={t("Epochs")} name="train_epochs" min={1} placeholder="10" {...fields} />
        <NumberField label={t("Rank")} name="lora_rank" min={1} max={256} placeholder="64" {...fields} />
        <NumberField
          label={t("Learning rate")}
          name="learning_rate"
          step="any"
          placeholder="0.0001"
          {...fields}
        />
      </div>
      <div class="row">
        <Button
          disabled={isBusy || (songs.length === 0 && !values.folder) || styleNameOf(form) === ""}
          onClick={() => void startOrAsk()}
        >
          {stage || t("Train")}
        </Button>
        {status?.is_training && (
          <Button onClick={() => void attempt(() => carillon.call("POST", "/v1/training/stop", {}))}>
            {t("Stop")}
          </Button>
        )}
        {trained && (
          <>
            <Button
              onClick={() =>
                void attempt(
                  () => patient.call("POST", "/v1/lora/load", { lora_path: trained }),
                  t("The trained adapter is in use."),
                )
              }
            >
              {t("Use the trained adapter")}
            </Button>
            <Button
              onClick={() =>
                void attempt(() => makeComparisonPair(trained, values), t("Two songs are queued."))
              }
            >
              {t("Compare a song before and after")}
            </Button>
          </>
        )}
      </div>
      {replaced !== "" && (
        <p class="row" role="alert">
          {t("The style {name} was trained already.", { name: replaced })}
          <Button class="danger" disabled={isBusy} onClick={() => void start()}>
            {t("Replace it")}
          </Button>
          <Button onClick={() => setReplaced("")}>{t("Keep it")}</Button>
        </p>
      )}
      {status?.interrupted && !isBusy && (
        <Interrupted
          run={status.interrupted}
          onResume={(run) =>
            void attempt(async () => {
              await resume(run);
              await read();
            }, t("Training has started."))
          }
        />
      )}
      {status !== null && status.state !== "idle" && <Progress status={status} />}
    </section>
  );
}

function stateInWords(state: TrainingStatus["state"]): string {
  switch (state) {
    case "idle":
      return "";
    case "starting":
      return t("Starting…");
    case "running":
      return t("Learning");
    case "stopping":
      return t("Stopping…");
    case "stopped":
      return t("Stopped");
    case "completed":
      return t("Finished");
    case "failed":
      return t("Failed");
  }
}

interface InterruptedProps {
  run: InterruptedRun;
  onResume: (run: InterruptedRun) => void;
}

/** A run that the server did not end, because it was stopped or killed. */
function Interrupted({ run, onResume }: InterruptedProps) {
  const { output_dir: name, current_step: step, resume_from: checkpoint } = run;
  return (
    <p class="row" role="status">
      {t("The training of {name} was interrupted at step {step}, as the server stopped.", { name, step })}{" "}
      {checkpoint === null && t("No checkpoint had been saved.")}
      <Button onClick={() => onResume(run)}>
        {checkpoint === null ? t("Start it again") : t("Resume from the last checkpoint")}
      </Button>
    </p>
  );
}

function Progress({ status }: { status: TrainingStatus }) {
  const { loss_history: history, current_step: step, total_steps: steps, current_loss: loss } = status;
  return (
    <>
      <progress value={step} max={Math.max(steps, 1)} aria-label={t("Progress of the training")} />
      <p class="faint" role="status">
        {stateInWords(status.state)} · {t("step {step} of {steps}", { step, steps })}
        {loss !== null && ` · ${t("loss {loss}", { loss: loss.toFixed(3) })}`}
        {status.is_training && ` · ${remainingTime(status.estimated_time_remaining)}`}
      </p>
      {status.error && <p class="failed">{status.error}</p>}
      {history.length > 1 && <Curve history={history} />}
    </>
  );
}

const CURVE = { width: 600, height: 120, margin: 6 };

function Curve({ history }: { history: TrainingStatus["loss_history"] }) {
  const losses = history.map(({ loss }) => loss);
  const [low, high] = [Math.min(...losses), Math.max(...losses)];
  const { width, height, margin } = CURVE;
  const points = losses.map((loss, index) => {
    const x = margin + ((width - 2 * margin) * index) / (losses.length - 1);
    const y = margin + (height - 2 * margin) * (1 - (loss - low) / (high - low || 1));
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  const words = t("Loss from {first} to {last} in {count} steps", {
    first: losses[0]?.toFixed(3) ?? "",
    last: losses.at(-1)?.toFixed(3) ?? "",
    count: losses.length,
  });
  return (
    <svg class="curve" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={words}>
      <title>{words}</title>
      <polyline points={points.join(" ")} />
    </svg>
  );
}
