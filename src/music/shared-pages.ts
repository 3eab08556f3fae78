/**
 * Tags with which messengers preview a link to the studio or to a song, and the page of one song, GET /song/{id}. The
 * song has no name there if the server has a key that the request lacks. The page itself then asks for the key.
 */
import { type Request, type RequestHandler, Router } from "express";
import { type Page, pageHeaders, sendWithTags } from "../http/page.js";
import type { Authenticator } from "./access/access.js";
import { HttpError } from "./errors.js";
import type { TaskRow } from "./queue/task-row.js";
import type { MusicService } from "./service.js";
import { coverPicture } from "./song/cover-picture.js";
import { titleOf } from "./song/title.js";

const NAME = "Carillon";
const PICTURE = "/cover.png";
const WAVES = 90;
/** Waveform of the studio's picture, which shows no song. */
const PEAKS = Array.from({ length: WAVES }, (_, i) =>
  Math.round(100 * Math.sin((Math.PI * (i + 0.5)) / WAVES) * (0.55 + 0.45 * Math.cos(i * i))),
);

export function studioTags(request: Request): string {
  return tagsOf({
    title: NAME,
    description: "Make music: songs from words, covers, repaints and stems",
    type: "website",
    image: originOf(request) + PICTURE,
  });
}

export function sharedPages(
  { tasks }: Pick<MusicService, "tasks">,
  authenticator: Authenticator,
  { folder, policy }: Page,
): Router {
  const page: RequestHandler = async (request, response) => {
    const task = authenticator.acceptsHeaders(request)
      ? await found(tasks.get(String(request.params.id)))
      : null;
    const address = originOf(request) + request.path;
    response.status(task === undefined ? 404 : 200).set(pageHeaders(policy));
    await sendWithTags(response, `${folder}/listen.html`, songTags(task ?? null, address));
  };
  const cover: RequestHandler = async (request, response) => {
    authenticator.authorize(request);
    const { songs } = await tasks.get(String(request.params.id));
    response.type("png").send(await coverPicture(songs[0]));
  };
  const picture: RequestHandler = async (_request, response) => {
    response.type("png").send(await coverPicture({ peaks: PEAKS }));
  };
  return Router({ caseSensitive: true, strict: true })
    .get(PICTURE, picture)
    .get("/song/:id", page)
    .get(`/song/:id${PICTURE}`, cover);
}

/** Origin that the client used. A trusted proxy (`trust proxy`) passes it on in X-Forwarded-Proto and -Host. */
function originOf({ protocol, host }: Request): string {
  return `${protocol === "https" ? "https" : "http"}://${host}`;
}

/** Undefined if there is no such task. */
function found(reading: Promise<TaskRow>): Promise<TaskRow | undefined> {
  return reading.catch((error: unknown) => {
    if (error instanceof HttpError && error.status === 404) return undefined;
    throw error;
  });
}

function songTags(task: TaskRow | null, address: string): string {
  if (task === null) return `<title>${NAME}</title>${tagsOf({ title: NAME })}`;
  const title = nameOf(task);
  const tags = tagsOf({
    title,
    description: task.prompt,
    type: "music.song",
    image: address + PICTURE,
  });
  return `<title>${escaped(`${title} – ${NAME}`)}</title>${tags}`;
}

function tagsOf(contents: Readonly<Record<string, string>>): string {
  return Object.entries({ ...contents, site_name: NAME })
    .map(([property, content]) => `<meta property="og:${property}" content="${escaped(content)}">`)
    .join("");
}

function nameOf({ title, prompt, lyrics, task_type: taskType }: TaskRow): string {
  return titleOf({ title, request: { taskType, words: { prompt, lyrics } } });
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
