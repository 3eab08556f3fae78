import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect } from "chai";
import fc from "fast-check";
import { RequestError } from "../../../src/music/errors.js";
import { NESTED_OBJECT_NAMES } from "../../../src/music/request/fields.js";
import { generationSchema } from "../../../src/music/request/schema.js";
import {
  parseFormatInput,
  parseModelSwitch,
  parseRandomSample,
  parseTaskIds,
} from "../../../src/music/request/service-bodies.js";
import { type Fields, namesOf } from "../../../src/parameters.js";
import { listenLocally } from "../../local-server.js";
import { propertyRuns } from "../../property-runs.js";
import { serverForAll, shortSong } from "../live-server.js";
import { type BodyApp, bodyApp } from "./body-app.js";
import { parsed } from "./request-parsing.js";

const names = Object.values(generationSchema.shape).flatMap((schema) => namesOf(schema));

/** Plausible and implausible parameter values. */
const value = fc.oneof(
  { weight: 3, arbitrary: fc.oneof(fc.integer(), fc.integer({ min: -2, max: 320 }), fc.double()) },
  { weight: 3, arbitrary: fc.double().map(String) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      ...["", " ", "true", "off", "4/4", "N/A", "nan", "text2music", "wav", "sde", "1,2,3", "0.9,0.5,0"],
      ...["<|audio_code_5|>", "[1,2]", "{}", '{"bpm":1e999}', "\u0000", "\ud800", "9".repeat(400)],
    ),
  },
  fc.boolean(),
  fc.string(),
  fc.jsonValue({ maxDepth: 3 }),
);
const flatFields = fc.dictionary(fc.oneof(fc.constantFrom(...names), fc.string()), value, { maxKeys: 12 });
const nested = fc.oneof(
  flatFields,
  flatFields.map((fields) => JSON.stringify(fields)),
  fc.string(),
);
const fields = fc
  .tuple(
    flatFields,
    fc.dictionary(fc.constantFrom(...Object.values(NESTED_OBJECT_NAMES).flat()), nested, { maxKeys: 3 }),
  )
  .map(([flat, inner]): Fields => ({ ...flat, ...inner }));

/**
 * Returns the result of `run`. If `run` throws a RequestError, checks that its detail is one line and returns
 * undefined.
 */
function orRefusal<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    expect(error).to.be.instanceOf(RequestError);
    expect((error as RequestError).detail).to.match(/^[^\n]{1,400}$/);
    return undefined;
  }
}

describe("request parsers under random input", () => {
  for (const rangePolicy of ["refuse", "clamp"] as const) {
    it(`random song requests are refused, or give values in range, with range policy ${rangePolicy}`, () => {
      fc.assert(
        fc.property(fields, fc.boolean(), (input, isTurbo) => {
          const request = orRefusal(() =>
            parsed(input, { rangePolicy, slotOf: () => ({ isTurbo, codebookSize: 4096 }) }),
          );
          if (request === undefined) return;
          expect(request.batchSize).to.be.within(1, 8);
          for (const seed of request.seeds)
            expect(BigInt(seed) >= 0n && BigInt(seed) < 2n ** 64n).to.equal(true);
          expect(request.inferenceSteps).to.be.within(1, isTurbo ? 20 : 200);
          if (request.bpm !== null) expect(request.bpm).to.be.within(30, 300);
          if (request.durationSeconds !== null) expect(request.durationSeconds).to.be.within(10, 600);
          expect(request.shift).to.be.within(1, 5);
          expect(request.timesteps?.at(-1) ?? 0).to.equal(0);
          for (const item of request.codes ?? []) {
            for (const code of item ?? []) expect(code).to.be.within(0, 63_999);
          }
          for (const warning of request.warnings) expect(warning).to.match(/^[^\n]+$/);
          expect(JSON.parse(JSON.stringify(request))).to.deep.equal(request);
        }),
        { numRuns: propertyRuns(2000) },
      );
    });
  }

  it("a parameter has the same value whether it is sent as JSON or as text", () => {
    const scalar = fc.oneof(
      fc.integer({ min: -5, max: 700 }),
      fc.boolean(),
      fc.constantFrom("wav", "sde", "en"),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), scalar, { maxKeys: 4 }), (input) => {
        const isText = (name: string) =>
          /prompt|caption|lyrics|desc|Query|query|instruction|path|Path/.test(name);
        const kept = Object.entries(input).filter(
          ([name, given]) => typeof given !== "boolean" || !isText(name),
        );
        const typed = Object.fromEntries(kept);
        const text = Object.fromEntries(kept.map(([name, given]) => [name, String(given)]));
        const first = orRefusal(() => parsed(typed));
        const second = orRefusal(() => parsed(text));
        if (first && second) expect({ ...second, warnings: [] }).to.deep.equal({ ...first, warnings: [] });
      }),
      { numRuns: propertyRuns(1000) },
    );
  });

  it("random fields of all other endpoints are parsed or refused", () => {
    const keys = fc.constantFrom(
      ...["task_id_list", "taskIdList", "prompt", "lyrics", "temperature", "param_obj", "time_signature"],
      ...["sample_type", "model", "slot", "init_llm", "lm_model_path"],
    );
    fc.assert(
      fc.property(fc.dictionary(keys, fc.oneof(value, nested)), (input) => {
        for (const id of orRefusal(() => parseTaskIds(input)) ?? []) expect(id).to.be.a("string");
        orRefusal(() => parseFormatInput(input, "refuse"));
        orRefusal(() => parseRandomSample(input));
        const change = orRefusal(() => parseModelSwitch(input));
        if (change) expect(change.slot).to.be.within(1, 3);
      }),
      { numRuns: propertyRuns(2000) },
    );
  });
});

describe("request bodies under random input", () => {
  let app: BodyApp;
  let server: Server;
  let address: { url: string; port: number };
  before(async () => {
    app = bodyApp({ apiKey: "k1", maxBytes: 2000, maxFileBytes: 500, maxFiles: 2 });
    server = createServer(app.app);
    address = await listenLocally(server);
  });
  after(() => server.close().closeAllConnections());

  /** Posts raw chunks and returns status and JSON of the response. */
  async function post(path: string, headers: Record<string, string>, chunks: Buffer[]) {
    const body = new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk);
        controller.close();
      },
    });
    const reply = await fetch(address.url + path, {
      method: "POST",
      headers,
      body,
      duplex: "half",
    } as RequestInit);
    return { status: reply.status, body: (await reply.json()) as { detail?: unknown } };
  }

  const check = async (reply: Awaited<ReturnType<typeof post>>) => {
    expect(reply.status).to.be.oneOf([200, 400, 401, 415]);
    if (reply.status !== 200) expect(reply.body.detail).to.be.a("string");
    expect(await app.storedFiles()).to.deep.equal([]);
    expect(app.faults).to.deep.equal([]);
  };

  const path = fc.constantFrom("/releaseTask", "/question", "/command");
  const key = fc.constantFrom<Record<string, string>>(
    {},
    { authorization: "Bearer k1" },
    { authorization: "no" },
  );
  const type = fc.oneof(
    fc.constantFrom(
      ...["application/json", "application/json; charset=utf-16le", "application/x-www-form-urlencoded"],
      ...[
        "multipart/form-data; boundary=b",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "text/xml",
      ],
    ),
    fc.stringMatching(/^[!-~]{1,40}$/),
  );
  const octets = fc.oneof(
    fc.uint8Array({ maxLength: 3000 }).map((bytes) => Buffer.from(bytes)),
    fc.string().map((text) => Buffer.from(text)),
    fc.json().map((text) => Buffer.from(text)),
    fc.webQueryParameters().map((text) => Buffer.from(text)),
  );

  it("random forms are parsed as URLSearchParams parses them", async () => {
    const piece = fc.oneof(
      fc.constantFrom("%", "+", "&", "=", "%4", "%41", "%e4%bd%a0", "%7E", "%C3%A9", "%zz", "%C3", "a"),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 30 }), async (pieces) => {
        const form = `x=1&${pieces.join("")}`;
        const { body } = await post(
          "/command",
          { authorization: "k1", "content-type": "application/x-www-form-urlencoded" },
          [Buffer.from(form)],
        );
        const parameters = new URLSearchParams(Buffer.from(form).toString());
        parameters.delete("ai_token");
        const { fields } = body as { fields?: Record<string, unknown> };
        for (const name of parameters.keys()) {
          const values = parameters.getAll(name);
          expect(fields?.[name], name).to.deep.equal(values.length > 1 ? values : values[0]);
        }
      }),
      { numRuns: propertyRuns(300) },
    );
  });

  it("random request bodies of any type get a response and leave no files", async () => {
    await fc.assert(
      fc.asyncProperty(
        path,
        key,
        type,
        fc.array(octets, { maxLength: 3 }),
        async (where, auth, contentType, chunks) => {
          await check(await post(where, { ...auth, "content-type": contentType }, chunks));
        },
      ),
      { numRuns: propertyRuns(400) },
    );
  });

  const field = fc.constantFrom(
    "prompt",
    "ai_token",
    "src_audio",
    "ref_audio",
    "ctx_audio",
    "reference_audio",
    "x",
  );
  const part = fc
    .record({
      field,
      fileName: fc.option(fc.constantFrom("", "a.wav", "../../x.exe", "n\\ul.wav"), { nil: undefined }),
      content: fc.oneof(fc.constantFrom("k1", "k2", "--b", "\r\n--b"), fc.string({ maxLength: 700 })),
    })
    .map(({ field, fileName, content }) => {
      const file = fileName === undefined ? "" : `; filename="${fileName}"\r\nContent-Type: audio/wav`;
      return `--b\r\nContent-Disposition: form-data; name="${field}"${file}\r\n\r\n${content}\r\n`;
    });
  const multipart = fc
    .array(part, { maxLength: 5 })
    .map((parts) => Buffer.from(`${parts.join("")}--b--\r\n`));
  /** Multipart bodies in which noise replaces a random piece. They are split into chunks. */
  const damaged = fc
    .tuple(
      multipart,
      fc.nat(),
      fc.nat({ max: 40 }),
      fc.oneof(fc.constant(""), fc.string({ maxLength: 5 })),
      fc.nat(),
    )
    .map(([whole, at, length, noise, split]) => {
      const start = at % (whole.length + 1);
      const bytes = Buffer.concat([
        whole.subarray(0, start),
        Buffer.from(noise),
        whole.subarray(start + length),
      ]);
      const middle = split % (bytes.length + 1);
      return [bytes.subarray(0, middle), bytes.subarray(middle)].filter((chunk) => chunk.length > 0);
    });

  for (const [name, chunks] of [
    ["whole", multipart.map((bytes) => [bytes])],
    ["damaged", damaged],
  ] as const) {
    it(`random ${name} multipart bodies get a response and leave no files`, async () => {
      await fc.assert(
        fc.asyncProperty(path, key, chunks, async (where, auth, bytes) => {
          await check(
            await post(where, { ...auth, "content-type": "multipart/form-data; boundary=b" }, bytes),
          );
        }),
        { numRuns: propertyRuns(500) },
      );
    });
  }

  it("multipart bodies that are cut off anywhere leave no files and do not affect later requests", async () => {
    await fc.assert(
      fc.asyncProperty(multipart, fc.nat(), async (bytes, at) => {
        const socket = connect(address.port, "127.0.0.1");
        await once(socket, "connect");
        const head = `POST /releaseTask HTTP/1.1\r\nHost: x\r\nAuthorization: k1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${bytes.length + 1}\r\n\r\n`;
        socket.write(Buffer.concat([Buffer.from(head), bytes.subarray(0, at % (bytes.length + 1))]));
        socket.end();
        socket.resume();
        await once(socket, "close");
      }),
      { numRuns: propertyRuns(200) },
    );
    while ((await app.storedFiles()).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(app.faults).to.deep.equal([]);
    expect(
      (
        await post("/releaseTask", { authorization: "k1", "content-type": "application/json" }, [
          Buffer.from("{}"),
        ])
      ).status,
    ).to.equal(200);
  });
});

/** How long a test waits for a response before it disconnects. */
const PATIENCE_MS = 50;

describe("a live server that gets hostile requests", () => {
  const POST_PATHS = [
    "/release_task",
    "/query_result",
    "/create_random_sample",
    "/v1/dataset/load",
    "/cancel_task",
  ];
  const server = serverForAll({ SVC_QUEUE_MAXSIZE: "1" });

  /** Sends raw bytes. Returns the status, or null if the connection is closed without a response. */
  async function send(chunks: (string | Buffer)[], patience?: Promise<unknown>): Promise<number | null> {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    let reply = "";
    const answered = new Promise<void>((resolve) => {
      socket
        .on("error", () => {})
        .on("data", (chunk) => {
          reply += chunk.toString("latin1");
          if (patience !== undefined) resolve();
        });
      socket.once("close", () => resolve());
    });
    for (const chunk of chunks)
      socket.write(typeof chunk === "string" ? Buffer.from(chunk, "latin1") : chunk);
    await Promise.race([answered, ...(patience === undefined ? [] : [patience])]);
    socket.destroy();
    return reply === "" ? null : Number(reply.split(" ")[1]);
  }

  /** Sends an incomplete request. Disconnects if the server waits for the rest. */
  const sendIncomplete = (...chunks: (string | Buffer)[]) => send(chunks, sleep(PATIENCE_MS));

  /** Asserts that the response is not a server error and that the next request succeeds. */
  async function survives(status: number | null): Promise<void> {
    expect(status === null || status < 500, `status ${status}`).to.equal(true);
    expect((await server.client.get("/health")).status).to.equal(200);
  }

  const post = (path: string, headers: string, body: string | Buffer) =>
    send([
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${body.length}\r\n${headers}\r\n\r\n`,
      body,
    ]);
  const postJson = (path: string, body: string) => post(path, "Content-Type: application/json", body);
  const postForm = (path: string, body: string) =>
    post(path, "Content-Type: application/x-www-form-urlencoded", body);
  const postParts = (path: string, ...parts: string[]) =>
    post(
      path,
      "Content-Type: multipart/form-data; boundary=b",
      `${parts.map((part) => `--b\r\n${part}\r\n`).join("")}--b--\r\n`,
    );
  const part = (disposition: string, rest = "", content = "x") =>
    `Content-Disposition: form-data${disposition}\r\n${rest}\r\n${content}`;

  const charsets = [
    "utf-7",
    "utf-16be",
    "utf-16le",
    "base64",
    "hex",
    "",
    "\xff",
    "x".repeat(200),
    "__proto__",
  ];
  const names = ["prompt", "", "__proto__", "constructor", "src_audio", "ai_token", "a".repeat(10_000)];

  it("refuses a poll whose results exceed the response limit, and answers a smaller one", async () => {
    const id = await server.client.submit({
      ...shortSong,
      lyrics: "é".repeat(32_768),
      prompt: "ü".repeat(4096),
    });
    const { item } = await server.client.finished(id);
    expect(item.status, item.error).to.equal(1);
    const other = "11111111-1111-1111-1111-111111111111";
    const few = await server.client.post("/query_result", { task_id_list: [id, other, id] });
    expect(few.body.data.map(({ task_id }: { task_id: string }) => task_id)).to.deep.equal([id, other, id]);
    expect(few.body.data[2]).to.deep.equal(item);
    const many = await server.client.post("/query_result", { task_id_list: Array(1000).fill(id) });
    expect(many.status).to.equal(400);
    expect(many.body.detail).to.match(/^task_id_list: the results of its \d+ tasks exceed 8388608 bytes/);
    const unknown = await server.client.post("/query_result", { task_id_list: Array(1000).fill(other) });
    expect(unknown.body.data).to.have.length(1000);
  });

  for (const [index, path] of POST_PATHS.entries()) {
    const tag = index < 2 ? "" : " @slow";
    it(`answers ${path} for any headers of multipart parts${tag}`, async () => {
      for (const charset of charsets) {
        await survives(
          await postParts(
            path,
            part('; name="prompt"', `Content-Type: text/plain; charset="${charset}"\r\n`),
          ),
        );
        await survives(await postParts(path, part(`; name*=${charset}''%ff%00`)));
        await survives(await postParts(path, part(`; name="src_audio"; filename*=${charset}''%ff%00`)));
        await survives(
          await post(path, `Content-Type: application/json; charset=${charset}`, '{"prompt":"x"}'),
        );
        await survives(
          await post(path, `Content-Type: application/json\r\nContent-Encoding: ${charset}`, "{}"),
        );
      }
      for (const name of names) {
        await survives(await postParts(path, part(`; name="${name}"`)));
        await survives(
          await postParts(
            path,
            part(`; name="${name}"; filename="${name}"`, "Content-Transfer-Encoding: base64\r\n"),
          ),
        );
      }
      await survives(await postParts(path, part("")));
      await survives(await postParts(path, "", "\r\n\r\n", "x: y", `${"h: v\r\n".repeat(3000)}\r\n`));
    });

    it(`answers requests to ${path} with any number of fields and any depth of nesting${tag}`, async () => {
      await survives(await postJson(path, `{"a":${"[".repeat(500_000)}`));
      await survives(await postJson(path, `{"a":${'{"a":'.repeat(100_000)}`));
      await survives(
        await postJson(
          path,
          JSON.stringify({
            metas: "[".repeat(300_000),
            param_obj: "[".repeat(300_000),
            task_id_list: "[".repeat(300_000),
          }),
        ),
      );
      await survives(
        await postJson(path, `{${Array.from({ length: 60_000 }, (_, i) => `"k${i}":1`).join()}}`),
      );
      await survives(await postJson(path, JSON.stringify({ prompt: "x".repeat(900_000) })));
      for (const filler of ["&", "a&", "=", "a=+&", "+", "%41", "%ff", "%"]) {
        await survives(await postForm(path, `prompt=${filler.repeat(900_000 / filler.length)}`));
      }
      await survives(await postParts(path, ...Array(1100).fill(part('; name="a"'))));
    });
  }

  it("answers a chat with unclosed tags, and a body with many unknown fields", async () => {
    for (const content of ["<prompt>".repeat(100_000), "</lyrics>".repeat(90_000)]) {
      await survives(
        await postJson("/v1/chat/completions", JSON.stringify({ messages: [{ role: "user", content }] })),
      );
    }
    const fields = Array.from({ length: 29_000 }, (_, i) => [`prompt_${i}`, 1]);
    await survives(
      await postJson("/release_task", JSON.stringify({ bpm: 1, ...Object.fromEntries(fields) })),
    );
  });

  it("answers invalid compressed bodies", async () => {
    const bomb = Buffer.alloc(30_000_000, " ");
    for (const [encoding, encode] of [
      ["gzip", gzipSync],
      ["deflate", deflateSync],
      ["br", brotliCompressSync],
    ] as const) {
      const headers = `Content-Type: application/json\r\nContent-Encoding: ${encoding}`;
      expect(await post("/release_task", headers, encode(bomb))).to.equal(400);
      const whole = encode(Buffer.from('{"task_id_list":[]}'));
      expect(await post("/query_result", headers, whole)).to.equal(200);
      await survives(await post("/query_result", headers, whole.subarray(0, -3)));
      await survives(await post("/query_result", headers, Buffer.concat([whole, Buffer.from("garbage")])));
    }
  });

  it("answers requests with ids that no store can hold", async () => {
    for (const id of ["", "x".repeat(3000), "\u0000", "é".repeat(7000), "../x", "__proto__", "\ud800"]) {
      await survives((await server.client.post("/query_result", { task_id_list: [id, id] })).status);
      await survives((await server.client.post("/cancel_task", { task_id: id })).status);
      await survives(
        (await server.client.get(`/v1/audio?path=${encodeURIComponent(Buffer.from(id).toString())}`)).status,
      );
    }
  });

  const targets = [
    "/",
    "*",
    "//[",
    "http://[",
    "http://a:b/",
    "/%ff",
    "/v1/audio?path=%ff",
    "/v1/dataset/sample/%ff",
    "?",
    "/#[",
  ];
  const octet = fc.constantFrom(
    ...["\r", "\n", "\t", "\0", "\xff", ":", ";", "=", '"', ",", "a", "0", " ", "%"],
  );
  const noise = fc.array(octet, { maxLength: 40 }).map((octets) => octets.join(""));
  const header = fc.tuple(
    fc.constantFrom(
      ...[
        "Host",
        "Origin",
        "Content-Type",
        "Content-Encoding",
        "Content-Length",
        "Transfer-Encoding",
        "Expect",
      ],
      ...["Range", "Authorization", "Cookie", "Upgrade", "Connection", "If-None-Match", "X"],
    ),
    fc.oneof(
      noise,
      fc.constantFrom(
        "chunked",
        "multipart/form-data; boundary=",
        "bytes=-1",
        "100-continue",
        "-1",
        "keep-alive",
      ),
    ),
  );

  it("answers requests with hostile headers, or closes the connection", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("GET", "POST", "OPTIONS", "CONNECT", "PUT"),
        fc.oneof(
          fc.constantFrom(...targets),
          noise.map((text) => `/${text}`),
        ),
        fc.array(header, { maxLength: 4 }),
        noise,
        async (method, target, headers, body) => {
          const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
          await survives(
            await sendIncomplete(`${method} ${target} HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n${body}`),
          );
        },
      ),
      { numRuns: propertyRuns(150) },
    );
  });

  it("answers broken and hostile multipart parts, or closes the connection", async () => {
    const piece = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.constantFrom(
          ...[
            "--b",
            "--",
            "\r\n",
            "\r\n\r\n",
            "Content-Disposition: form-data",
            '; name="prompt"',
            '; filename="a"',
            "Content-Type: ",
            "text/plain; charset=",
            "utf-7",
            "; name*=utf-8''%",
          ],
        ),
      },
      { weight: 1, arbitrary: noise },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 25 }), fc.nat({ max: 60 }), async (pieces, missing) => {
        const body = `--b\r\n${pieces.join("")}`;
        const head = `POST /release_task HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${body.length + missing}\r\n\r\n`;
        await survives(await sendIncomplete(head, body));
      }),
      { numRuns: propertyRuns(150) },
    );
  });
});
