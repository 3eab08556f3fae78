/**
 * The page of one song, which a shared link opens: GET /song/{id}. It names the song for messengers, which show a
 * preview of a link, unless the server has a key that the request lacks. The page itself then asks for the key.
 */
import { readFile } from "node:fs/promises";
import { type RequestHandler, Router } from "express";
import { PAGES, type Page, pageHeaders } from "../http/page.js";
import type { Authenticator } from "./access/access.js";
import { HttpError } from "./errors.js";
import type { TaskRow } from "./queue/task-row.js";
import type { MusicService } from "./service.js";
import { coverPicture } from "./song/cover-picture.js";
import { titleOf } from "./song/title.js";

const NAME = "Carillon";

export function listeningPage(
  { tasks }: Pick<MusicService, "tasks">,
  authenticator: Authenticator,
  { folder, policy }: Page,
): Router {
  const page: RequestHandler = async (request, response) => {
    const task = authenticator.acceptsHeaders(request)
      ? await found(tasks.get(String(request.params.id)))
      : null;
    const html = await readFile(`${PAGES}/${folder}/listen.html`, "utf8");
    const { protocol, headers } = request;
    const address = `${protocol}://${headers.host}${request.path}`;
    response
      .status(task === undefined ? 404 : 200)
      .set(pageHeaders(policy))
      .type("html")
      .send(html.replace("</head>", () => `${tagsOf(task ?? null, address)}</head>`));
  };
  const cover: RequestHandler = async (request, response) => {
    authenticator.authorize(request);
    response.type("png").send(await coverPicture(await tasks.get(String(request.params.id))));
  };
  return Router({ caseSensitive: true, strict: true })
    .get("/song/:id", page)
    .get("/song/:id/cover.png", cover);
}

/** Undefined if there is no such task. */
function found(reading: Promise<TaskRow>): Promise<TaskRow | undefined> {
  return reading.catch((error: unknown) => {
    if (error instanceof HttpError && error.status === 404) return undefined;
    throw error;
  });
}

function tagsOf(task: TaskRow | null, address: string): string {
  const tags =
    task === null
      ? { "og:title": NAME }
      : {
          "og:title": nameOf(task),
          "og:description": task.prompt,
          "og:type": "music.song",
          "og:site_name": NAME,
          "og:image": `${address}/cover.png`,
        };
  const lines = Object.entries(tags).map(
    ([property, content]) => `<meta property="${property}" content="${escaped(content)}">`,
  );
  const title = task === null ? NAME : `${nameOf(task)} – ${NAME}`;
  return `<title>${escaped(title)}</title>${lines.join("")}`;
}

function nameOf({ title, prompt, lyrics, task_type: taskType }: TaskRow): string {
  return titleOf({ title, request: { taskType, words: { prompt, lyrics } } });
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
