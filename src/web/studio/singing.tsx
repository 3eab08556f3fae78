/** Warns before submission that the model cannot sing, and downloads one that can. */
import { useEffect } from "preact/hooks";
import { carillon, type ModelInventory, type ModelPull } from "./api.js";
import { t } from "./language.js";
import { notifyTabs } from "./live.js";
import { type Attempt, useEndpoint } from "./part.js";
import { byteSize } from "./words.js";

const POLL_MS = 1000;

interface SingingHintProps {
  lyrics: string;
  /** Name of the chosen model; "" for the default model. */
  model: string;
  attempt: Attempt;
}

export function SingingHint({ lyrics, model: chosen, attempt }: SingingHintProps) {
  const [inventory, readInventory] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const [answer, read] = useEndpoint<ModelPull>("/v1/models/pull");
  const pull = answer?.pull;
  const isRunning = pull?.state === "running";
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => void read(), POLL_MS);
    return () => {
      clearInterval(timer);
      void readInventory();
    };
  }, [isRunning]);
  const current = inventory?.models.find(({ name }) => name === (chosen || inventory.default_model));
  const hasWords = lyrics.split("\n").some((line) => /^\s*[^\s[]/.test(line));
  if (!hasWords || inventory === null || current === undefined || current.sings) return null;
  const singing = inventory.models.find(({ sings }) => sings);
  const load = (model: string) =>
    attempt(() => carillon.call("POST", "/v1/init", { model }), t("{model} is loaded.", { model }));
  return (
    <div class="hint singing" role="status">
      <p>{t("{model} does not sing: the song will be instrumental.", { model: current.name })}</p>
      {singing !== undefined ? (
        <button type="button" onClick={() => void load(singing.name)}>
          {t("Use {model}", { model: singing.name })}
        </button>
      ) : (
        answer && (
          <>
            <button
              type="button"
              disabled={isRunning}
              onClick={() =>
                void attempt(async () => {
                  await carillon.call("POST", "/v1/models/pull", { model: answer.singing.model });
                  await read();
                  notifyTabs();
                })
              }
            >
              {t("Get {model}, which sings", { model: answer.singing.model })}
            </button>
            <p class="faint">
              {t("{size} to download. It needs a CUDA GPU; on a CPU a song takes minutes.", {
                size: byteSize(answer.singing.bytes),
              })}
            </p>
            {isRunning && (
              <progress
                aria-label={t("Progress of {model}", { model: pull.model })}
                max={1}
                value={pull.total_bytes === 0 ? 0 : pull.done_bytes / pull.total_bytes}
              />
            )}
            {pull?.state === "failed" && <p class="failed">{pull.error}</p>}
          </>
        )
      )}
    </div>
  );
}
