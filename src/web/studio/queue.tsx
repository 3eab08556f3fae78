/** Running, waiting and recently failed tasks. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Task } from "./api.js";
import { Button } from "./button.js";
import { t } from "./language.js";
import { queue } from "./live.js";
import { failureOf } from "./notes.js";
import { taskName } from "./song.js";
import { useStore } from "./store.js";
import { remainingTime } from "./words.js";

/** Error text of a cancelled task. The queue does not list cancelled tasks as failed. */
const CANCELLED = "Cancelled by user";
/** Number of tasks shown while a long queue is collapsed. */
const COLLAPSED_TASKS = 5;

interface QueueProps {
  playing: Task | undefined;
  onListen: (task: Task) => void;
  onCancel: (task: Task) => void;
  onDismiss: (task: Task) => void;
  onAgain: (task: Task) => void;
}

export function Queue({ playing, onListen, onCancel, onDismiss, onAgain }: QueueProps) {
  const { active, failed: allFailed } = useStore(queue);
  const [isWhole, setWhole] = useState(false);
  const failed = allFailed.filter(({ error }) => error !== CANCELLED);
  const shown = isWhole ? active : active.slice(0, COLLAPSED_TASKS);
  const hidden = active.length - shown.length;
  if (active.length + failed.length === 0) return null;
  return (
    <section aria-labelledby="queue-title">
      <div class="row head">
        <h2 id="queue-title">
          {t("Queue")} <span class="faint">{active.length > 0 ? active.length : ""}</span>
        </h2>
        {active.length > 1 && (
          <Button
            class="plain"
            onClick={() => {
              for (const task of active.toReversed()) onCancel(task);
            }}
          >
            {t("Cancel all")}
          </Button>
        )}
        {failed.length > 1 && (
          <Button
            class="plain"
            onClick={() => {
              for (const task of failed) onDismiss(task);
            }}
          >
            {t("Clear failed")}
          </Button>
        )}
      </div>
      <ul class="queue">
        {shown.map((task) => (
          <li key={task.task_id} class={task.state}>
            <span class="name" dir="auto">
              {taskName(task)}
            </span>
            {task.state === "running" ? <Progress task={task} /> : <Waiting task={task} />}
            <span class="row">
              {task.preview_seconds > 0 && task.task_id !== playing?.task_id && (
                <Button
                  onClick={() => onListen(task)}
                  aria-label={t("Listen to {song} while it is made", { song: taskName(task) })}
                >
                  ▶ {t("Listen")}
                </Button>
              )}
              <Button
                onClick={() => onCancel(task)}
                aria-label={t("Cancel {song}", { song: taskName(task) })}
              >
                {t("Cancel")}
              </Button>
            </span>
          </li>
        ))}
        {(hidden > 0 || isWhole) && (
          <li class="further">
            <Button class="plain" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
              {isWhole ? t("Show fewer") : t("Show {count} more", { count: hidden })}
            </Button>
          </li>
        )}
        {failed.map((task) => (
          <li key={task.task_id} class="ended">
            <span class="name" dir="auto">
              {taskName(task)}
            </span>
            <span class="state failed" title={task.error ?? ""}>
              {failureOf(task)}
            </span>
            <span class="row">
              <Button onClick={() => onAgain(task)}>{t("Try again")}</Button>
              <Button
                class="plain"
                onClick={() => onDismiss(task)}
                aria-label={t("Dismiss {song}", { song: taskName(task) })}
              >
                {t("Dismiss")}
              </Button>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Waiting({ task }: { task: Task }) {
  const position = task.queue_position ?? 0;
  return (
    <span class="state">{position <= 1 ? t("Next") : t("Waiting, place {place}", { place: position })}</span>
  );
}

function Progress({ task }: { task: Task }) {
  useTick();
  const { progress, start_time: start } = task;
  const now = Date.now() / 1000;
  const reported = useRef({ progress, at: now });
  if (reported.current.progress !== progress) reported.current = { progress, at: now };
  const shown = useRef(0);
  const { at } = reported.current;
  const perSecond = start === null || at - start < 1 ? 0 : progress / (at - start);
  // Between two reports the bar goes on at its pace so far.
  shown.current = Math.max(shown.current, Math.min(progress + perSecond * (now - at), 0.99));
  const left = (1 - shown.current) / perSecond;
  return (
    <span class="state">
      <progress
        value={shown.current}
        max={1}
        aria-label={t("Progress of {song}", { song: taskName(task) })}
      />
      <span>
        {stageWords(task)}
        {progress > 0.05 && perSecond > 0 && ` · ${remainingTime(left)}`}
      </span>
    </span>
  );
}

/** The stages of the service in words: what they do with the song. */
function stageWords({ stage }: Task): string {
  if (/^(Reading|Extracting|Describing)/.test(stage)) return t("Listening");
  if (/^(Decoding|Preparing audio)/.test(stage)) return t("Finishing");
  return /^Waiting/.test(stage) ? t("Waiting") : t("Composing");
}

/** Re-renders four times a second, for elapsed times. */
function useTick(): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), 250);
    return () => clearInterval(timer);
  }, []);
}
