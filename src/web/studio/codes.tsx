/** Songs as audio codes, five a second: what the language model planned, or what a person gives instead. */
import { useEffect, useRef, useState } from "preact/hooks";
import { call, type Parameters, type Song, type Task } from "./api.js";
import { nameOf } from "./song.js";
import { clock } from "./words.js";

const CODES_PER_SECOND = 5;

/** One line for each version, or one for all. */
export function CodesField({ values, set }: { values: Parameters; set: (change: Parameters) => void }) {
  const lines = linesOf(values.audio_code_string);
  const codes = lines.map(numbersIn);
  const field = useRef<HTMLDetailsElement>(null);
  const hasCodes = lines.length > 0;
  useEffect(() => {
    if (hasCodes && field.current !== null) field.current.open = true;
  }, [hasCodes]);
  return (
    <details class="group" ref={field}>
      <summary>
        Audio codes <span class="faint">{codes.length === 0 ? "none" : codes.map(sizeOf).join(", ")}</span>
      </summary>
      <div class="field codes">
        <label for="codes">Codes, five a second</label>
        <textarea
          id="codes"
          rows={3}
          placeholder="Of a song's plan, such as 4711, 60021, 7; a line for each version"
          value={lines.join("\n")}
          onInput={(event) => {
            const written = event.currentTarget.value;
            const isEmpty = written.trim() === "";
            set({
              audio_code_string: isEmpty ? null : written.split("\n"),
              use_audio_codes: isEmpty ? null : true,
            });
          }}
        />
        {codes.map((version, index) => version.length > 0 && <Strip key={index} codes={version} />)}
      </div>
    </details>
  );
}

interface PlanProps {
  task: Task;
  index: number;
  onReuse: (parameters: Parameters) => void;
}

/** What a song was planned as: its facts, and its codes where it has some. */
export function Plan(props: PlanProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="whole" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="faint">Plan</summary>
      {isOpen && <PlanContent {...props} />}
    </details>
  );
}

function PlanContent({ task, index, onReuse }: PlanProps) {
  const [song, setSong] = useState(task.songs[index]);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    call<Task>("GET", `/v1/tasks/${task.task_id}`).then(
      (whole) => setSong(whole.songs[index]),
      (error: Error) => setFailure(error.message),
    );
  }, [task.task_id, index]);
  if (song === undefined) return null;
  const codes = song.audio_codes ?? [];
  return (
    <div class="codes">
      <dl>
        {factsOf(song, task).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
        <div>
          <dt>Audio codes</dt>
          <dd>{codes.length === 0 ? "none" : sizeOf(codes)}</dd>
        </div>
      </dl>
      {failure !== "" && <p class="failed">{failure}</p>}
      {codes.length > 0 && (
        <>
          <Strip codes={codes} />
          <textarea
            readonly
            rows={3}
            aria-label={`Audio codes of ${nameOf(task)}`}
            value={codes.join(", ")}
          />
          <div class="row">
            <button type="button" onClick={() => onReuse({ ...task.parameters, ...asPlanned(song) })}>
              Use codes
            </button>
          </div>
        </>
      )}
    </div>
  );
}

function factsOf(song: Song, { lm_model: lm }: Task): [string, string | number][] {
  const { bpm, keyscale, timesignature, duration } = song.metas;
  const facts: [string, string | number | null | undefined][] = [
    ["Planned by", lm || "nobody"],
    ["Tempo", bpm && `${bpm} BPM`],
    ["Key", keyscale],
    ["Beats in a bar", timesignature],
    ["Length", duration && clock(duration)],
    ["Language", song.vocal_language],
    ["Seed", song.seed],
    ["Model", song.dit_model],
  ];
  return facts.filter((fact): fact is [string, string | number] => Boolean(fact[1]));
}

/** The parameters that render the song without planning it once more. */
function asPlanned(song: Song): Parameters {
  const { bpm, keyscale, timesignature } = song.metas;
  return {
    prompt: song.caption,
    lyrics: song.lyrics,
    bpm,
    key_scale: keyscale,
    time_signature: timesignature,
    vocal_language: song.vocal_language,
    audio_code_string: [song.audio_codes?.join(", ")],
    use_audio_codes: true,
    thinking: false,
    sample_mode: false,
    sample_query: "",
    use_format: false,
    batch_size: 1,
    seed: song.seed,
  };
}

/** Each code as a stripe of a colour of its own: what repeats looks alike. */
function Strip({ codes }: { codes: readonly number[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const drawing = canvas.current?.getContext("2d");
    if (!drawing) return;
    for (const [index, code] of codes.entries()) {
      // Neighbouring numbers are far apart on the circle: the golden angle.
      drawing.fillStyle = `hsl(${(code * 137.508) % 360} 55% 55%)`;
      drawing.fillRect(index, 0, 1, 1);
    }
  }, [codes.join()]);
  return (
    <canvas
      ref={canvas}
      class="strip"
      width={codes.length}
      height={1}
      role="img"
      aria-label={sizeOf(codes)}
    />
  );
}

function sizeOf(codes: readonly number[]): string {
  return `${codes.length} for ${clock(codes.length / CODES_PER_SECOND)}`;
}

/** A text, or a list of texts and of lists of numbers: as requests take them. */
function linesOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const items = Array.isArray(value) && !value.every(Number.isInteger) ? value : [value];
  return items.map((item) => (Array.isArray(item) ? item.join(", ") : String(item)));
}

function numbersIn(line: string): number[] {
  return (line.match(/\d+/g) ?? []).map(Number);
}
