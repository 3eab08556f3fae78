/** Models and their slots, adapters, and the training of adapters. */
import { useState } from "preact/hooks";
import { type AdapterStatus, call } from "./api.js";
import { Models } from "./models.js";
import { type Attempt, Part, useAnswer } from "./part.js";
import { Training } from "./training.js";

export function Workshop({ attempt }: { attempt: Attempt }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="group workshop" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Models and adapters</summary>
      {isOpen && (
        <>
          <Models attempt={attempt} />
          <Adapters attempt={attempt} />
          <Training attempt={attempt} />
        </>
      )}
    </details>
  );
}

function Adapters({ attempt }: { attempt: Attempt }) {
  const [status] = useAnswer<AdapterStatus>("/v1/lora/status");
  const [path, setPath] = useState("");
  const change = (endpoint: string, body: object, done = "") =>
    attempt(() => call("POST", `/v1/lora/${endpoint}`, body), done);
  return (
    <Part title="Adapters">
      <div class="row">
        <input
          aria-label="Adapter on the server"
          placeholder="Path on the server, such as zydeco/final"
          value={path}
          onInput={(event) => setPath(event.currentTarget.value)}
        />
        <button
          type="button"
          disabled={path.trim() === ""}
          onClick={() => change("load", { lora_path: path }, "The adapter is loaded.")}
        >
          Load adapter
        </button>
      </div>
      {status !== null && status.active_adapter !== null && (
        <div class="row">
          <label class="check">
            <input
              type="checkbox"
              checked={status.use_lora}
              onChange={(event) => change("toggle", { use_lora: event.currentTarget.checked })}
            />
            {status.active_adapter}
          </label>
          <label class="check">
            Strength
            <input
              type="range"
              min={0}
              max={1}
              step={0.05}
              value={status.lora_scale}
              onChange={(event) => change("scale", { scale: Number(event.currentTarget.value) })}
            />
            <output>{status.lora_scale}</output>
          </label>
          <button
            type="button"
            class="end"
            onClick={() => change("unload", {}, "The base model plays alone.")}
          >
            Unload
          </button>
        </div>
      )}
    </Part>
  );
}
