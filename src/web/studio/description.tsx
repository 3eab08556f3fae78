/** Panel with the description of a recording: how it sounds, tempo, key, language, words. */
import { useEffect, useState } from "preact/hooks";
import { CarillonError } from "../../client/index.js";
import { carillon, type Parameters, type Task } from "./api.js";
import { Button } from "./button.js";
import { descriptions, forgetDescription } from "./descriptions.js";
import { type Fact, FactList } from "./fact-list.js";
import { language, t } from "./language.js";
import { watchTasks } from "./live.js";
import { failureOf } from "./notes.js";
import { useStore } from "./store.js";
import { formatTime } from "./words.js";

interface DescriptionProps {
  /** Key of the recording, see `recordingKey`. */
  recording: string;
  name: string;
  onUse: (values: Parameters) => void;
}

export function Description({ recording, name, onUse }: DescriptionProps) {
  const id = useStore(descriptions)[recording];
  const task = useDescription(id, recording);
  if (id === undefined) return null;
  const found = task?.analysis ?? null;
  return (
    <section class="description" aria-label={t("Description of {song}", { song: name })}>
      <div class="row">
        <strong>{t("How it sounds")}</strong>
        {found !== null && <Button onClick={() => onUse(valuesOf(found))}>{t("Use description")}</Button>}
        <Button class="plain end" onClick={() => forgetDescription(recording)}>
          {t("Close")}
        </Button>
      </div>
      <p role="status" class={task?.state === "failed" ? "failed" : ""}>
        {found === null ? (task && failureOf(task)) || t("Listening to it…") : String(found.prompt ?? "")}
      </p>
      {found !== null && <Facts analysis={found} />}
    </section>
  );
}

function Facts({ analysis }: { analysis: NonNullable<Task["analysis"]> }) {
  const { bpm, keyscale, timesignature, duration, lyrics } = analysis;
  const code = languageOf(analysis);
  const names = new Intl.DisplayNames([language()], { type: "language" });
  const facts: Fact[] = [
    [t("Tempo"), bpm && `${bpm} BPM`],
    [t("Key"), keyscale],
    [t("Beats in a bar"), timesignature],
    [t("Language"), code && (names.of(code) ?? code)],
    [t("Length"), duration && formatTime(Number(duration))],
  ];
  return (
    <>
      <FactList facts={facts} />
      {lyrics && <pre dir="auto">{String(lyrics)}</pre>}
    </>
  );
}

function languageOf({ language: code }: NonNullable<Task["analysis"]>): string {
  return code === undefined || code === "unknown" ? "" : String(code);
}

/** The description as values of the form. */
function valuesOf(analysis: NonNullable<Task["analysis"]>): Parameters {
  const { prompt, lyrics, bpm, keyscale, timesignature } = analysis;
  const found = {
    prompt,
    lyrics,
    bpm,
    key_scale: keyscale,
    time_signature: timesignature,
    vocal_language: languageOf(analysis),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value));
}

/** The task that describes the recording; null until it is read. */
function useDescription(id: string | undefined, recording: string): Task | null {
  const [task, setTask] = useState<Task | null>(null);
  useEffect(() => {
    setTask(null);
    if (id === undefined) return;
    const read = () =>
      carillon.task(id).then(setTask, (error: unknown) => {
        if (error instanceof CarillonError && error.status === 404) forgetDescription(recording);
      });
    void read();
    return watchTasks(({ event, data }) => {
      if (event === "ready") void read();
      else if (event === "task" && data.task_id === id) setTask(data);
      else if (event === "removed" && data.task_id === id) forgetDescription(recording);
    });
  }, [id]);
  return task;
}
