/** Progress of a model download. */
import { useEffect } from "preact/hooks";
import type { ModelPull } from "./api.js";
import { useEndpoint } from "./endpoint.js";
import { t } from "./language.js";

const POLL_MS = 1000;

/** Download of a model, read again until it ends. */
export function usePull(onEnd: () => Promise<void>) {
  const [answer, read] = useEndpoint<ModelPull>("/v1/models/pull");
  const isRunning = answer?.pull?.state === "running";
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => void read(), POLL_MS);
    return () => {
      clearInterval(timer);
      void onEnd();
    };
  }, [isRunning]);
  return { answer, isRunning, read };
}

export function PullProgress({ pull }: Pick<ModelPull, "pull">) {
  if (pull === null) return null;
  const { model, done_bytes: done, total_bytes: total } = pull;
  return (
    <progress
      aria-label={t("Progress of {model}", { model })}
      max={1}
      value={total === 0 ? 0 : done / total}
    />
  );
}
