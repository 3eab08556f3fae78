/** Audio codes of songs, five per second: planned by the language model, or entered by the user. */
import { useEffect, useRef, useState } from "preact/hooks";
import { carillon, type Parameters, type Song, type Task } from "./api.js";
import { Button } from "./button.js";
import { type Fact, FactList } from "./fact-list.js";
import { Group } from "./fields.js";
import { t } from "./language.js";
import { errorInWords } from "./notes.js";
import { songName, versionLetter } from "./song.js";
import { formatTime } from "./words.js";

const CODES_PER_SECOND = 5;

/** Form field with one line of codes per version, or one line for all. */
export function CodesField({ values, set }: { values: Parameters; set: (change: Parameters) => void }) {
  const lines = linesOf(values.audio_code_string);
  const codes = lines.map(numbersIn);
  const field = useRef<HTMLDetailsElement>(null);
  const hasCodes = lines.length > 0;
  useEffect(() => {
    if (hasCodes && field.current !== null) field.current.open = true;
  }, [hasCodes]);
  return (
    <Group
      icon="codes"
      title={t("Audio codes")}
      summary={codes.length === 0 ? t("none") : codes.map(sizeOf).join(", ")}
      field={field}
    >
      <div class="field codes">
        <label for="codes">{t("Codes, five a second")}</label>
        <textarea
          id="codes"
          rows={3}
          placeholder={t("From a song's plan, such as 4711, 60021, 7; one line for each version")}
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
    </Group>
  );
}

interface PlanProps {
  task: Task;
  index: number;
  onReuse: (parameters: Parameters) => void;
}

/** Plan of a song: metadata and audio codes. */
export function SongPlan(props: PlanProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="whole" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="faint">
        {t("Plan")} {props.task.songs.length > 1 && versionLetter(props.index)}
      </summary>
      {isOpen && <PlanContent {...props} />}
    </details>
  );
}

function PlanContent({ task, index, onReuse }: PlanProps) {
  const [song, setSong] = useState(task.songs[index]);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    carillon.task(task.task_id).then(
      (whole) => setSong(whole.songs[index]),
      (error: unknown) => setFailure(errorInWords(error)),
    );
  }, [task.task_id, index]);
  if (song === undefined) return null;
  const codes = song.audio_codes ?? [];
  return (
    <div class="codes">
      <FactList facts={factsOf(song, task)} />
      {failure !== "" && <p class="failed">{failure}</p>}
      {codes.length > 0 && (
        <>
          <Strip codes={codes} />
          <textarea
            readonly
            rows={3}
            aria-label={t("Audio codes of {song}", { song: songName(task) })}
            value={codes.join(", ")}
          />
          <div class="row">
            <Button onClick={() => onReuse({ ...task.parameters, ...asPlanned(song) })}>
              {t("Use codes")}
            </Button>
          </div>
        </>
      )}
    </div>
  );
}

function factsOf(song: Song, { lm_model: lm }: Task): Fact[] {
  const { bpm, keyscale, timesignature, duration } = song.metas;
  const codes = song.audio_codes ?? [];
  return [
    [t("Planned by"), lm || t("no language model")],
    [t("Tempo"), bpm && `${bpm} BPM`],
    [t("Key"), keyscale],
    [t("Beats in a bar"), timesignature],
    [t("Length"), duration && formatTime(duration)],
    [t("Language"), song.vocal_language],
    [t("Seed"), song.seed],
    [t("Model"), song.dit_model],
    [t("Audio codes"), codes.length === 0 ? t("none") : sizeOf(codes)],
  ];
}

/** Parameters that render the song without planning it again. */
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

/** Draws codes as coloured stripes, so that repetition is visible. */
function Strip({ codes }: { codes: readonly number[] }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const drawing = canvas.current?.getContext("2d");
    if (!drawing) return;
    for (const [index, code] of codes.entries()) {
      // The golden angle gives neighbouring numbers different hues.
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
  return t("{count} for {length}", {
    count: codes.length,
    length: formatTime(codes.length / CODES_PER_SECOND),
  });
}

/**
 * Splits a parameter into lines of codes. Text or a list of numbers is one line; any other list has one line
 * per item.
 */
function linesOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  const items = Array.isArray(value) && !value.every(Number.isInteger) ? value : [value];
  return items.map((item) => (Array.isArray(item) ? item.join(", ") : String(item)));
}

function numbersIn(line: string): number[] {
  return (line.match(/\d+/g) ?? []).map(Number);
}
