/** Test application: responds with the fields and the contents of the stored files. */
import { readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import express, { type Express } from "express";
import { Authenticator } from "../../../src/music/access/access.js";
import type { Upload } from "../../../src/music/audio/uploads.js";
import { answerErrors } from "../../../src/music/errors.js";
import { BODY_RULES, BodyReader } from "../../../src/music/request/body.js";
import { temporaryDirectory } from "../tasks.js";

export interface BodyAppOptions {
  apiKey?: string;
  maxBytes?: number;
  maxFileBytes?: number;
  maxFiles?: number;
}

export interface BodyApp {
  app: Express;
  directory: string;
  /** Names of the files in the upload directory. */
  storedFiles(): Promise<string[]>;
  /** Internal errors of the application. Tests expect this list to be empty. */
  faults: unknown[];
}

export function bodyApp(options: BodyAppOptions = {}): BodyApp {
  const directory = join(temporaryDirectory(), "uploads");
  const reader = new BodyReader(new Authenticator(options.apiKey ?? ""), {
    maxBytes: options.maxBytes ?? 100_000,
    uploads: { directory, maxBytes: options.maxFileBytes ?? 100_000, maxFiles: options.maxFiles ?? 4 },
  });
  const faults: unknown[] = [];
  const app = express();
  for (const [name, rule] of Object.entries(BODY_RULES)) {
    app.post(`/${name}`, async (request, response) => {
      const body = await reader.read(request, rule);
      const reference = await describeUpload(body.uploads.referenceAudio);
      const source = await describeUpload(body.uploads.sourceAudio);
      await body.dispose();
      response.json({ fields: body.fields, reference, source });
    });
  }
  app.use(answerErrors((_, error) => faults.push(error)));
  return {
    app,
    directory,
    faults,
    storedFiles: () => readdir(directory).catch(() => []),
  };
}

async function describeUpload(upload: Upload | null): Promise<unknown> {
  if (upload === null) return null;
  if (upload.path === null) return "withheld";
  return { name: basename(upload.path), content: await readFile(upload.path, "utf8") };
}
