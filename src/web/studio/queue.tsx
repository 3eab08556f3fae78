/** What is being made and what waits, with what failed of late. */
import { useEffect, useState } from "preact/hooks";
import type { Task } from "./api.js";
import type { Live } from "./live.js";
import { nameOf } from "./song.js";
import { roughly } from "./words.js";

interface QueueProps {
  live: Live;
  /** The task that plays. */
  playing: Task | undefined;
  onListen: (task: Task) => void;
  onRemove: (task: Task) => void;
  onAgain: (task: Task) => void;
}

export function Queue({ live, playing, onListen, onRemove, onAgain }: QueueProps) {
  const { active, failed } = live;
  if (active.length + failed.length === 0) return null;
  return (
    <section aria-labelledby="queue-title">
      <h2 id="queue-title">Queue</h2>
      <ul class="queue">
        {active.map((task) => (
          <li key={task.task_id} class={task.state}>
            <span class="name">{nameOf(task)}</span>
            {task.state === "running" ? <Progress task={task} /> : <Waiting task={task} />}
            <span class="row">
              {task.preview_seconds > 0 && task.task_id !== playing?.task_id && (
                <button
                  type="button"
                  onClick={() => onListen(task)}
                  aria-label={`Listen to ${nameOf(task)} while it is made`}
                >
                  ▶ Listen
                </button>
              )}
              <button type="button" onClick={() => onRemove(task)} aria-label={`Cancel ${nameOf(task)}`}>
                Cancel
              </button>
            </span>
          </li>
        ))}
        {failed.map((task) => (
          <li key={task.task_id} class="ended">
            <span class="name">{nameOf(task)}</span>
            <span class="state failed">{task.error}</span>
            <span class="row">
              <button type="button" onClick={() => onAgain(task)}>
                Try again
              </button>
              <button
                type="button"
                class="plain"
                onClick={() => onRemove(task)}
                aria-label={`Dismiss ${nameOf(task)}`}
              >
                Dismiss
              </button>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Waiting({ task }: { task: Task }) {
  const position = task.queue_position ?? 0;
  return <span class="state">{position <= 1 ? "Next" : `Waiting, place ${position}`}</span>;
}

function Progress({ task }: { task: Task }) {
  useTick();
  const { progress, stage, start_time: start } = task;
  const elapsed = start === null ? 0 : Date.now() / 1000 - start;
  const isGuess = progress > 0.05 && elapsed > 2;
  return (
    <span class="state">
      <progress value={progress} max={1} aria-label={`Progress of ${nameOf(task)}`} />
      <span>
        {stage} · {Math.round(progress * 100)} %
        {isGuess && ` · ${roughly((elapsed * (1 - progress)) / progress)}`}
      </span>
    </span>
  );
}

/** Draws again every second: time passes without events. */
function useTick(): void {
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick((tick) => tick + 1), 1000);
    return () => clearInterval(timer);
  }, []);
}
