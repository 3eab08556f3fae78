/** The endpoint for sounds of ElevenLabs and LocalAI: makes a song and answers with its audio. */
import { z } from "zod";
import { ignoredWarning, meaningOfIgnored } from "../../ignored.js";
import { describe, type Fields, optionalText, parameter } from "../../parameters.js";
import { contentTypeOf } from "../audio/formats.js";
import { openAiError, RequestError, setErrorBody } from "../errors.js";
import { BODY_RULES } from "../request/body.js";
import { songOf } from "./chat-completions.js";
import { abortableRoute, withTag } from "./route.js";
import { acceptTask } from "./task-endpoints.js";

const FORMAT = /^(mp3|opus|wav|flac)(?:_(\d+))?(?:_(\d+))?$/;

const fields = {
  text: parameter("text", z.string(), "Description of the song: `prompt` of POST /release_task."),
  duration: parameter(
    ["duration_seconds", "duration"],
    z.number().optional(),
    "Length in seconds: `audio_duration`.",
  ),
  model: parameter(["model_id", "model"], optionalText, "Name of a model; others get the default one."),
  format: parameter(
    "output_format",
    optionalText,
    "Audio format, in the body or in the query: `mp3_44100_128` (codec, sample rate, kbit/s), or only mp3, opus, wav or flac. Unset: mp3.",
  ),
  influence: parameter("prompt_influence", z.number().optional(), meaningOfIgnored("prompt_influence")),
  loop: parameter("loop", z.boolean().optional(), meaningOfIgnored("loop")),
};

const IGNORED = ["prompt_influence", "loop"] as const;

/** Fields of POST /release_task. @throws RequestError naming the field */
export function soundFields(body: Fields, queryFormat: unknown): Fields {
  const {
    text,
    duration_seconds,
    duration,
    model_id,
    model,
    output_format,
    prompt_influence,
    loop,
    ...rest
  } = body;
  if (typeof text !== "string" || text.trim() === "") {
    throw new RequestError(`text must be a description of the song, got ${describe(text ?? null)}`);
  }
  return {
    ...rest,
    prompt: text,
    audio_duration: duration_seconds ?? duration,
    model: model_id ?? model,
    batch_size: 1,
    ...formatFields(output_format ?? queryFormat),
  };
}

function formatFields(format: unknown): Fields {
  if (format === undefined || format === null || format === "") return {};
  const [, codec, rate, bitrate] = FORMAT.exec(String(format)) ?? [];
  if (codec === undefined) {
    throw new RequestError(
      `output_format must be mp3, opus, wav or flac, such as mp3_44100_128, got ${describe(format)}`,
    );
  }
  return {
    audio_format: codec,
    sample_rate: rate,
    ...(codec === "mp3" && { mp3_bitrate: bitrate }),
  };
}

/** Queues a task and answers with its song. The task is cancelled if the client disconnects. */
const route = abortableRoute(async (context, request, response, caller) => {
  setErrorBody(response, openAiError);
  const { service, bodies } = context;
  const { "xi-api-key": key } = request.headers;
  if (typeof key === "string") request.headers["x-api-key"] ??= key;
  const body = await bodies.read(request, BODY_RULES.command);
  const sent = { ...body, fields: soundFields(body.fields, request.query.output_format) };
  const warnings = IGNORED.filter((name) => body.fields[name]).map(ignoredWarning);
  const { task_id } = await acceptTask(context, sent, caller, { warnings });
  const { audioFiles } = await songOf(context, task_id, caller.signal);
  const [song] = audioFiles;
  if (song === undefined) throw new Error("A task without an analysis made no song");
  const path = await service.audioFiles.localPath(service.audioFiles.pathOf(song.name), caller.signal);
  response.set({ "Content-Type": contentTypeOf(path), "X-Carillon-Task": task_id });
  await new Promise<void>((resolve, reject) =>
    response.sendFile(path, { dotfiles: "allow", cacheControl: false }, (error) =>
      error ? reject(error) : resolve(),
    ),
  );
});

export const SOUND_ENDPOINTS = withTag("Chat", {
  "POST /v1/sound-generation": {
    summary: "Make a song and answer with its audio",
    description:
      "For clients of ElevenLabs and LocalAI. Parameters of POST /release_task, such as `lyrics` and `bpm`, are accepted too. The key may be in the header `xi-api-key`. The header `X-Carillon-Task` of the answer is the id of the task.",
    body: { shape: fields },
    answer: { media: "audio/*", description: "The audio" },
    errors: [429, 507],
    example: { text: "slow bossa nova", duration_seconds: 20 },
    route,
  },
});
