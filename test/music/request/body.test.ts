import { existsSync, readdirSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { expect } from "chai";
import request from "supertest";
import { listenLocally } from "../../local-server.js";
import { type BodyApp, type BodyAppOptions, bodyApp } from "./body-app.js";
import { parsed } from "./request-parsing.js";

describe("request bodies", () => {
  const apps: BodyApp[] = [];
  const start = (options?: BodyAppOptions) => {
    const app = bodyApp(options);
    apps.push(app);
    return app;
  };
  afterEach(async () => {
    for (const app of apps.splice(0)) {
      expect(await app.storedFiles(), "files left in the upload directory").to.deep.equal([]);
      expect(app.faults, "faults inside the server").to.deep.equal([]);
    }
  });

  const send = async (body: string | Buffer, type: string | null, path = "/releaseTask", headers = {}) => {
    const { app } = start();
    const call = request(app).post(path).set(headers);
    if (type !== null) call.set("Content-Type", type);
    // Sends a buffer unchanged. By default, supertest would encode it as JSON if the Content-Type is JSON.
    return call.serialize((raw) => raw as never).send(body);
  };
  /** Posts without a Content-Type header through a raw socket, because HTTP libraries always send one. */
  const sendWithoutType = async (body: string, path = "/releaseTask") => {
    const { app } = start();
    return rawPost(app, path, `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };

  describe("content types of bodies", () => {
    const object = '{"prompt":"café"}';
    for (const type of [
      "application/json",
      "application/json; charset=utf-8",
      "Application/JSON;charset=UTF-8",
      "application/vnd.x+json",
    ]) {
      it(`accepts Content-Type ${type}`, async () => {
        const { status, body } = await send(object, type);
        expect(status).to.equal(200);
        expect(body.fields).to.deep.equal({ prompt: "café" });
      });
    }

    it("reads a form", async () => {
      const { body } = await send("prompt=a+b%21&blank=", "application/x-www-form-urlencoded; charset=utf-8");
      expect(body.fields).to.deep.equal({ prompt: "a b!", blank: "" });
    });

    it("accepts JSON that has the Content-Type of a form, which is curl's default", async () => {
      const { body } = await send(object, "application/x-www-form-urlencoded");
      expect(body.fields).to.deep.equal({ prompt: "café" });
    });

    it("collects the values of repeated fields in a form", async () => {
      for (const name of ["track_classes", "track_classes[]", "track_classes%5B%5D"]) {
        const form = `${name}=drums&${name}=bass&audio_codes=1`;
        const { body } = await send(form, "application/x-www-form-urlencoded");
        expect(body.fields).to.deep.equal({ track_classes: ["drums", "bass"], audio_codes: "1" });
      }
    });

    for (const [where, text] of [
      ["", '{"prompt":"a","lyrics":"x","prompt":"b"}'],
      [" of a nested object", '{"lyrics":"x","param_obj":{"prompt":"a", "pr\\u006fmpt" : "b"}}'],
      [" of a nested object in a list", '{"a":[{"prompt":"prompt"},{"prompt":"a","b":{},"prompt":"b"}]}'],
    ]) {
      it(`refuses JSON with a repeated name${where}`, async () => {
        const { status, body } = await send(text as string, "application/json");
        expect(status).to.equal(400);
        expect(body.detail).to.equal('The JSON payload holds "prompt" more than once');
      });
    }

    it("accepts JSON with one name in several objects, and text that looks like a repeated name", async () => {
      const fields = { a: { b: 1 }, b: [{ a: "a" }, { a: '"a":1,"a":2' }], "": "b", 'c"': ["c", "c"] };
      expect((await send(JSON.stringify(fields), "application/json")).body.fields).to.deep.equal(fields);
    });

    it("reads JSON and forms without a Content-Type", async () => {
      expect((await sendWithoutType(object)).body.fields).to.deep.equal({ prompt: "café" });
      expect((await sendWithoutType("prompt=x&a=")).body.fields).to.deep.equal({ prompt: "x", a: "" });
    });

    it("accepts a compressed body and other charsets", async () => {
      const zipped = await send(gzipSync(object), "application/json", "/releaseTask", {
        "Content-Encoding": "gzip",
      });
      expect(zipped.body.fields).to.deep.equal({ prompt: "café" });
      const latin = await send(Buffer.from(object, "latin1"), "application/json; charset=latin1");
      expect(latin.body.fields).to.deep.equal({ prompt: "café" });
    });

    for (const type of ["text/xml", "text/plain", "application/octet-stream", "nonsense"]) {
      it(`refuses Content-Type ${type} with 415`, async () => {
        const { status, body } = await send(object, type);
        expect(status).to.equal(415);
        expect(body.detail).to.include(type).and.to.include("application/json");
      });
    }

    it("refuses an unrecognisable body without a Content-Type with 415", async () => {
      const reply = await sendWithoutType("hello");
      expect(reply.status).to.equal(415);
      expect(reply.body.detail).to.include("(missing)");
    });

    it("refuses unknown charsets and encodings with 415", async () => {
      expect((await send(object, "application/json; charset=klingon")).status).to.equal(415);
      const headers = { "Content-Encoding": "rot13" };
      expect((await send(object, "application/json", "/releaseTask", headers)).status).to.equal(415);
    });

    it("accepts multipart only for endpoints with forms or files", async () => {
      const { app } = start();
      expect((await request(app).post("/command").field("model", "x")).status).to.equal(415);
      expect((await request(app).post("/question").field("task_id_list", "[]")).status).to.equal(200);
    });

    it("accepts an empty body if every field is optional", async () => {
      const { app } = start();
      for (const path of ["/question", "/command"]) {
        const reply = await request(app).post(path);
        expect(reply.status).to.equal(200);
        expect(reply.body.fields).to.deep.equal({});
      }
      expect((await request(app).post("/releaseTask")).status).to.equal(415);
      const empty = await request(app).post("/releaseTask").set("Content-Type", "application/json").send("");
      expect(empty.status).to.equal(400);
    });
  });

  it("equal fields give the same request as JSON, as a form and as multipart", async () => {
    const values = {
      prompt: "né & co",
      thinking: true,
      bpm: 84,
      use_cot_caption: false,
      audio_duration: 42.5,
    };
    const texts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
    const { app } = start();
    const replies = [
      await request(app).post("/releaseTask").send(values),
      await request(app).post("/releaseTask").type("form").send(texts),
      await request(app).post("/releaseTask").field(texts),
    ];
    const [json, form, multipart] = replies.map((reply) => parsed(reply.body.fields));
    expect(json).to.include({ prompt: "né & co", thinking: true, bpm: 84, useCotCaption: false });
    expect(form).to.deep.equal(json);
    expect(multipart).to.deep.equal(json);
  });

  describe("rejection of bad bodies", () => {
    const cases: [string, string | Buffer, string, RegExp][] = [
      ["malformed JSON", '{"prompt":', "application/json", /^Malformed JSON payload/],
      ["a JSON array", "[1]", "application/json", /must be an object/],
      ["a JSON string", '"x"', "application/json", /must be an object/],
      ["null", "null", "application/json", /must be an object/],
      ["malformed JSON sent as a form", "{oops", "application/x-www-form-urlencoded", /hint/],
      ["invalid UTF-8", Buffer.from([0x7b, 0xff, 0x7d]), "application/json", /not valid utf-8/],
      [
        "too many form fields",
        "a=1&".repeat(1001),
        "application/x-www-form-urlencoded",
        /more than 1000 fields/,
      ],
      ["an oversized body", " ".repeat(100_001), "application/json", /larger than the limit of 100000 bytes/],
      ["multipart without boundary", "x", "multipart/form-data", /boundary/i],
      ["multipart without parts", "x", "multipart/form-data; boundary=b", /Malformed multipart/],
      [
        "a truncated multipart body",
        '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\nx',
        "multipart/form-data; boundary=b",
        /Malformed multipart/,
      ],
      [
        "a file cut off by the end of the body",
        '--b\r\nContent-Disposition: form-data; name="src_audio"; filename="a.wav"\r\n\r\nxyz',
        "multipart/form-data; boundary=b",
        /Malformed multipart/,
      ],
      [
        "a file whose headers run straight into the closing boundary",
        '--b\r\nContent-Disposition: form-data; name="src_audio"; filename="a.wav"\r\n\r\n--b--\r\n',
        "multipart/form-data; boundary=b",
        /Malformed multipart/,
      ],
      [
        "a malformed part header",
        "--b\r\nContent-Disposition form-data\r\n\r\nx\r\n--b--\r\n",
        "multipart/form-data; boundary=b",
        /Malformed multipart/,
      ],
      ...["utf-7", "utf-16be", "x", "\xff"].map((charset): [string, string, string, RegExp] => [
        `a text part in the charset ${charset}`,
        `--b\r\nContent-Disposition: form-data; name="prompt"\r\nContent-Type: text/plain; charset="${charset}"\r\n\r\nx\r\n--b--\r\n`,
        "multipart/form-data; boundary=b",
        /^"prompt" must be text in UTF-8/,
      ]),
      ["JSON of 65 levels", nest(65), "application/json", /must nest at most 64 levels deep$/],
      ["JSON of 40,000 levels", nest(40_000), "application/json", /must nest at most 64 levels deep$/],
      ["JSON that nests and never ends", `{"a":${"[".repeat(40_000)}`, "application/json", /64 levels/],
      ["JSON of many values", `{"a":[${"1,".repeat(30_000)}1]}`, "application/json", /at most 30000 values$/],
    ];
    for (const [name, content, type, detail] of cases) {
      it(`refuses ${name} with 400`, async () => {
        const { status, body } = await send(content, type);
        expect(status).to.equal(400);
        expect(body.detail).to.match(detail);
      });
    }

    it("refuses a damaged compressed body with 400", async () => {
      const reply = await send("no gzip", "application/json", "/releaseTask", { "Content-Encoding": "gzip" });
      expect(reply.status).to.equal(400);
      expect(reply.body.detail).to.be.a("string");
    });

    it("accepts JSON nested 64 levels deep, not counting brackets in strings", async () => {
      const text = `\\"${"[".repeat(100)}${"{,".repeat(10_000)}`;
      for (const object of [nest(64), JSON.stringify({ a: text, b: [text] })]) {
        const { body } = await send(object, "application/json");
        expect(body.fields).to.deep.equal(JSON.parse(object));
      }
    });

    for (const [name, encode] of [
      ["gzip", gzipSync],
      ["deflate", deflateSync],
      ["br", brotliCompressSync],
    ] as const) {
      it(`refuses a ${name} decompression bomb before the body is complete`, async () => {
        const bomb = encode(Buffer.alloc(20_000_000, " "));
        const { app } = start();
        const reply = await rawPost(
          app,
          "/releaseTask",
          Buffer.concat([
            Buffer.from(
              `Content-Type: application/json\r\nContent-Encoding: ${name}\r\nContent-Length: ${2 * bomb.length}\r\n\r\n`,
            ),
            bomb,
          ]),
        );
        expect(reply.status).to.equal(400);
        expect(reply.body.detail).to.equal("The request body is larger than the limit of 100000 bytes");
      });
    }

    it("refuses a too large Content-Length before the body is sent", async () => {
      const { app } = start();
      const reply = await rawPost(
        app,
        "/releaseTask",
        "Content-Type: application/json\r\nContent-Length: 100001\r\n\r\n",
      );
      expect(reply.status).to.equal(400);
      expect(reply.body.detail).to.include("limit of 100000 bytes");
    });
  });

  describe("multipart bodies", () => {
    it("returns the fields of multipart data, with repeated fields as a list", async () => {
      const { app } = start();
      const reply = await request(app)
        .post("/releaseTask")
        .field("prompt", "naïve")
        .field("track_classes", "drums")
        .field("track_classes", "bass")
        .field("__proto__", "x");
      expect(reply.body.fields).to.include({ prompt: "naïve" });
      expect(reply.body.fields.track_classes).to.deep.equal(["drums", "bass"]);
    });

    it("refuses two files of one field, and keeps none", async () => {
      const { app, directory } = start();
      const reply = await request(app)
        .post("/releaseTask")
        .set("Authorization", "k1")
        .attach("src_audio", Buffer.from("one"), "one.wav")
        .attach("src_audio", Buffer.from("two"), "two.wav");
      expect(reply.status).to.equal(400);
      expect(reply.body.detail).to.equal("src_audio was sent more than once");
      expect(readdirSync(directory)).to.deep.equal([]);
    });

    for (const [field, kind, prefix] of [
      ["ref_audio", "reference", "ref_audio_"],
      ["reference_audio", "reference", "ref_audio_"],
      ["ctx_audio", "source", "ctx_audio_"],
      ["src_audio", "source", "ctx_audio_"],
    ] as const) {
      it(`stores a file under ${field} during the request`, async () => {
        const { app } = start();
        const reply = await request(app).post("/releaseTask").attach(field, Buffer.from("sound"), "a.wav");
        expect(reply.body[kind].content).to.equal("sound");
        expect(reply.body[kind].name).to.match(new RegExp(`^${prefix}[0-9a-f-]{36}\\.wav$`));
      });
    }

    it("ctx_audio takes precedence over src_audio", async () => {
      const { app } = start();
      const reply = await request(app)
        .post("/releaseTask")
        .attach("src_audio", Buffer.from("second"), "a.wav")
        .attach("ctx_audio", Buffer.from("first"), "a.wav");
      expect(reply.body.source.content).to.equal("first");
    });

    it("uses only the extension of a hostile file name", async () => {
      const { app } = start();
      for (const [name, suffix] of [
        ["../../x.exe", "\\.exe"],
        ["/etc/passwd", ""],
        ["a.w/../v", ""],
        ["x.…", ""],
        ["y.aVeryLongExtension", ""],
      ] as const) {
        const reply = await request(app).post("/releaseTask").attach("src_audio", Buffer.from("s"), name);
        expect(reply.body.source.name).to.match(new RegExp(`^ctx_audio_[0-9a-f-]{36}${suffix}$`));
      }
    });

    it("ignores empty file inputs, text in file fields and files in other fields", async () => {
      const part = (head: string, content: string) =>
        `--b\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`;
      const octets = "\r\nContent-Type: application/octet-stream";
      const body = [
        part(`name="src_audio"; filename=""${octets}`, ""),
        part(`name="ref_audio"; filename=""`, ""),
        part('name="ctx_audio"', "some/path.wav"),
        part('name="cover_art"; filename="a.png"', "pixels"),
        "--b--\r\n",
      ].join("");
      const reply = await send(body, "multipart/form-data; boundary=b");
      expect(reply.status).to.equal(200);
      expect(reply.body).to.include({ reference: null, source: null });
    });

    it("accepts a file of exactly the limit and refuses a larger one", async () => {
      const { app } = start({ maxFileBytes: 70_000 });
      const post = (size: number) =>
        request(app).post("/releaseTask").attach("src_audio", Buffer.alloc(size, 97), "a.wav");
      expect((await post(70_000)).body.source.content).to.have.length(70_000);
      const reply = await post(70_001);
      expect(reply.status).to.equal(400);
      expect(reply.body.detail).to.equal("src_audio is larger than the limit of 70000 bytes");
    });

    it("refuses a request with more files than the limit", async () => {
      const { app } = start({ maxFiles: 1 });
      const reply = await request(app)
        .post("/releaseTask")
        .attach("src_audio", Buffer.from("a"), "a.wav")
        .attach("ref_audio", Buffer.from("b"), "b.wav");
      expect(reply.status).to.equal(400);
      expect(reply.body.detail).to.include("more than 1 file");
    });

    it("refuses text parts over the body limit, single or in total", async () => {
      const { app } = start({ maxBytes: 1000 });
      const single = await request(app).post("/releaseTask").field("lyrics", "x".repeat(2000));
      const together = await request(app)
        .post("/releaseTask")
        .field("a", "x".repeat(600))
        .field("b", "x".repeat(600));
      for (const reply of [single, together]) {
        expect(reply.status).to.equal(400);
        expect(reply.body.detail).to.include("limit of 1000 bytes");
      }
    });

    it("responds to a large refused upload instead of closing the connection", async () => {
      const { app } = start({ maxFileBytes: 1000 });
      const reply = await request(app)
        .post("/releaseTask")
        .attach("src_audio", Buffer.alloc(5_000_000), "a.wav");
      expect(reply.status).to.equal(400);
    });

    it("answers 503 with the reason when the upload directory cannot be written", async () => {
      const failing = start();
      await writeFile(failing.directory, "a file where the directory should be");
      const reply = await request(failing.app)
        .post("/releaseTask")
        .attach("src_audio", Buffer.from("s"), "a.wav");
      expect(reply.status).to.equal(503);
      expect(reply.body.detail).to.include("is not writable (EEXIST)");
      expect(failing.faults.splice(0)).to.have.length(1);
      await rm(failing.directory);
    });

    it("deletes partial files when the client disconnects", async () => {
      const { app, storedFiles } = start();
      const server = createServer(app);
      const socket = connect((await listenLocally(server)).port);
      const head = '--b\r\nContent-Disposition: form-data; name="src_audio"; filename="a.wav"\r\n\r\n';
      socket.write(
        `POST /releaseTask HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 90000\r\n\r\n${head}${"s".repeat(20_000)}`,
      );
      while ((await storedFiles()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
      socket.destroy();
      while ((await storedFiles()).length > 0) await new Promise((resolve) => setTimeout(resolve, 5));
      await new Promise((resolve) => server.close(resolve));
    });
  });

  describe("API keys in a body", () => {
    const audio = Buffer.from("sound");

    const unreadable: [what: string, type: string, body: string, status: number][] = [
      ["an unknown type", "text/xml", "<a/>", 415],
      ["bad JSON", "application/json", '{"ai_token":"k1",', 400],
      ["JSON that is not an object", "application/json", '["k1"]', 400],
      ["an unknown charset", "application/json; charset=klingon", '{"ai_token":"k1"}', 415],
      [
        "a body beyond the limit",
        "application/json",
        `{"ai_token":"k1","prompt":"${"x".repeat(101_000)}"}`,
        400,
      ],
      ["a form without its boundary", "multipart/form-data", "ai_token=k1", 400],
      ["a truncated form", "multipart/form-data; boundary=b", "x", 400],
    ];
    for (const [what, type, body, status] of unreadable) {
      it(`answers 401 to ${what} without a valid API key, and ${status} with one`, async () => {
        const { app } = start({ apiKey: "k1" });
        const post = (headers: Record<string, string>) =>
          request(app).post("/releaseTask").set("Content-Type", type).set(headers).send(body);
        for (const headers of [{}, { Authorization: "Bearer k2" }]) {
          const reply = await post(headers as Record<string, string>);
          expect(reply.status).to.equal(401);
          expect(reply.body.detail).to.equal(
            "No valid key in the headers, and no ai_token could be read from the body",
          );
        }
        expect((await post({ Authorization: "Bearer k1" })).status).to.equal(status);
      });
    }

    it("a form error is answered as such, not with 401, if a valid ai_token precedes the bad field", async () => {
      const { app } = start({ apiKey: "k1", maxFileBytes: 3 });
      const post = (token: string) =>
        request(app).post("/releaseTask").field("ai_token", token).attach("src_audio", audio, "a.wav");
      const right = await post("k1");
      expect([right.status, right.body.detail]).to.deep.equal([
        400,
        "src_audio is larger than the limit of 3 bytes",
      ]);
      expect((await post("k2")).status).to.equal(401);
    });

    it("stores an uploaded file if a valid key came first, in a header or as ai_token", async () => {
      const { app } = start({ apiKey: "k1" });
      const byHeader = await request(app)
        .post("/releaseTask")
        .set("Authorization", "Bearer k1")
        .attach("src_audio", audio, "a.wav");
      expect(byHeader.body.source.content).to.equal("sound");
      const byToken = await request(app)
        .post("/releaseTask")
        .field("ai_token", "k1")
        .attach("src_audio", audio, "a.wav");
      expect(byToken.body.source.content).to.equal("sound");
    });

    it("discards an uploaded file that precedes the only valid API key", async () => {
      const { app } = start({ apiKey: "k1" });
      const reply = await request(app)
        .post("/releaseTask")
        .attach("src_audio", audio, "a.wav")
        .field("ai_token", "k1");
      expect(reply.status).to.equal(200);
      expect(reply.body.source).to.equal("withheld");
    });

    it("accepts an empty file input that precedes the API key", async () => {
      const { app } = start({ apiKey: "k1" });
      const body = [
        '--b\r\nContent-Disposition: form-data; name="src_audio"; filename=""',
        "Content-Type: application/octet-stream\r\n\r\n\r\n--b",
        'Content-Disposition: form-data; name="ai_token"\r\n\r\nk1\r\n--b--\r\n',
      ].join("\r\n");
      const reply = await request(app)
        .post("/releaseTask")
        .set("Content-Type", "multipart/form-data; boundary=b")
        .send(body);
      expect(reply.status).to.equal(200);
      expect(reply.body.source).to.equal(null);
    });

    it("stores no file of an unauthenticated upload", async () => {
      const { app, directory } = start({ apiKey: "k1" });
      const none = await request(app).post("/releaseTask").attach("src_audio", audio, "a.wav");
      const wrong = await request(app)
        .post("/releaseTask")
        .field("ai_token", "k2")
        .attach("src_audio", audio, "a.wav");
      expect([none.status, wrong.status]).to.deep.equal([401, 401]);
      expect(existsSync(directory)).to.equal(false);
    });

    it("answers 401 and deletes uploaded files if an ai_token after them is wrong", async () => {
      const { app } = start({ apiKey: "k1" });
      const reply = await request(app)
        .post("/releaseTask")
        .set("Authorization", "Bearer k1")
        .attach("src_audio", audio, "a.wav")
        .field("ai_token", "k2");
      expect(reply.status).to.equal(401);
    });
  });
});

/** Returns JSON of an object with arrays nested to the given depth. */
function nest(levels: number): string {
  return `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
}

async function rawPost(app: BodyApp["app"], path: string, rest: string | Buffer) {
  const server = createServer(app);
  const { port } = await listenLocally(server);
  try {
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, "127.0.0.1");
      let reply = "";
      socket.on("data", (chunk) => {
        reply += chunk;
      });
      socket.on("end", () => resolve(reply)).on("error", reject);
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`);
      socket.write(rest);
    });
    const [head = "", body = ""] = text.split("\r\n\r\n", 2);
    return { status: Number(head.split(" ")[1]), body: JSON.parse(body) };
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
}
