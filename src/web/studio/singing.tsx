/** Warns before submission that the model cannot sing, and downloads one that can. */
import { carillon, type ModelInventory, patient } from "./api.js";
import { Button } from "./button.js";
import { useEndpoint } from "./endpoint.js";
import { t } from "./language.js";
import { notifyTabs } from "./live.js";
import type { Attempt } from "./part.js";
import { PullProgress, usePull } from "./pull.js";
import { byteSize } from "./words.js";

interface SingingHintProps {
  lyrics: string;
  /** Name of the chosen model; "" for the default model. */
  model: string;
  attempt: Attempt;
}

export function SingingHint({ lyrics, model: chosen, attempt }: SingingHintProps) {
  const [inventory, readInventory] = useEndpoint<ModelInventory>("/v1/model_inventory");
  const current = inventory?.models.find(({ name }) => name === (chosen || inventory.default_model));
  const hasWords = lyrics.split("\n").some((line) => /^\s*[^\s[]/.test(line));
  if (!hasWords || inventory === null || current === undefined || current.sings) return null;
  return (
    <NoSinger name={current.name} inventory={inventory} readInventory={readInventory} attempt={attempt} />
  );
}

interface NoSingerProps {
  name: string;
  inventory: ModelInventory;
  readInventory: () => Promise<void>;
  attempt: Attempt;
}

function NoSinger({ name, inventory, readInventory, attempt }: NoSingerProps) {
  const { answer, isRunning, read } = usePull(readInventory);
  const singing = inventory.models.find(({ sings }) => sings);
  const load = (model: string) =>
    attempt(() => patient.call("POST", "/v1/init", { model }), t("{model} is loaded.", { model }));
  return (
    <div class="hint singing" role="status">
      <p>{t("{model} does not sing: the song will be instrumental.", { model: name })}</p>
      {singing !== undefined ? (
        <Button onClick={() => void load(singing.name)}>{t("Use {model}", { model: singing.name })}</Button>
      ) : (
        answer && (
          <>
            <Button
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
            </Button>
            <p class="faint">
              {t("{size} to download. It needs a CUDA GPU; on a CPU a song takes minutes.", {
                size: byteSize(answer.singing.bytes),
              })}
            </p>
            {isRunning && <PullProgress pull={answer.pull} />}
            {answer.pull?.state === "failed" && <p class="failed">{answer.pull.error}</p>}
          </>
        )
      )}
    </div>
  );
}
