/** Models and their slots, adapters, and the training of adapters. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "./api.js";
import { Training } from "./training.js";

export type Attempt = (work: () => Promise<unknown>, done?: string) => Promise<void>;

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

interface Inventory {
  models: { name: string; is_loaded: boolean; supported_task_types: string[] }[];
  lm_models: { name: string; is_loaded: boolean }[];
}

/** What the service answers, read again whenever something was changed. */
function useAnswer<T>(path: string): [T | null, () => Promise<void>] {
  const [answer, setAnswer] = useState<T | null>(null);
  const read = () => call<T>("GET", path).then(setAnswer, () => setAnswer(null));
  useEffect(() => void read(), [path]);
  return [answer, read];
}

function Models({ attempt }: { attempt: Attempt }) {
  const [inventory, read] = useAnswer<Inventory>("/v1/model_inventory");
  const [slot, setSlot] = useState(1);
  const load = (body: object, name: string) =>
    attempt(async () => {
      await call("POST", "/v1/init", body);
      await read();
    }, `${name} is loaded.`);
  return (
    <Part title="Models">
      <label class="field slot">
        Slot
        <select value={slot} onChange={(event) => setSlot(Number(event.currentTarget.value))}>
          {[1, 2, 3].map((number) => (
            <option key={number}>{number}</option>
          ))}
        </select>
      </label>
      <ul class="rows">
        {inventory?.models.map(({ name, is_loaded: isLoaded, supported_task_types: tasks }) => (
          <li key={name} class="row">
            <span>{name}</span>
            <span class="faint">{tasks.join(", ")}</span>
            <Loaded isLoaded={isLoaded} name={name} onLoad={() => load({ model: name, slot }, name)} />
          </li>
        ))}
        {inventory?.lm_models.map(({ name, is_loaded: isLoaded }) => (
          <li key={name} class="row">
            <span>{name}</span>
            <span class="faint">language model</span>
            <Loaded
              isLoaded={isLoaded}
              name={name}
              onLoad={() => load({ init_llm: true, lm_model_path: name }, name)}
            />
          </li>
        ))}
      </ul>
      <p class="faint">
        More models: run <code>npx carillon pull</code> on the server.
      </p>
    </Part>
  );
}

function Loaded({ isLoaded, name, onLoad }: { isLoaded: boolean; name: string; onLoad: () => void }) {
  if (isLoaded) return <span class="faint end">loaded</span>;
  return (
    <button type="button" class="end" aria-label={`Load ${name}`} onClick={onLoad}>
      Load
    </button>
  );
}

interface AdapterStatus {
  use_lora: boolean;
  lora_scale: number;
  active_adapter: string | null;
  adapters: string[];
}

function Adapters({ attempt }: { attempt: Attempt }) {
  const [status, read] = useAnswer<AdapterStatus>("/v1/lora/status");
  const [path, setPath] = useState("");
  const change = (endpoint: string, body: object, done = "") =>
    attempt(async () => {
      await call("POST", `/v1/lora/${endpoint}`, body);
      await read();
    }, done);
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

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="part" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}
