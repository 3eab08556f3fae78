import { Validator } from "@seriousme/openapi-schema-validator";
import { expect } from "chai";
import { generationSchema } from "../../../src/music/request/schema.js";
import { namesOf } from "../../../src/parameters.js";
import { serverForAll } from "../live-server.js";
import { document } from "../openapi-check.js";

type Schema = Record<string, unknown> & { properties: Record<string, Schema> };

const bodyOf = (path: string) =>
  document.paths[path]?.post?.requestBody?.content["application/json"]?.schema as Schema;

describe("content of the OpenAPI document", () => {
  it("the document is valid OpenAPI 3.1", async () => {
    const { valid, errors } = await new Validator().validate({ ...document });
    expect(errors).to.equal(undefined);
    expect(valid).to.equal(true);
  });

  it("describes name, aliases, type and meaning of every song parameter", () => {
    const { properties } = bodyOf("/release_task");
    for (const type of Object.values(generationSchema.shape)) {
      const [name, ...aliases] = namesOf(type);
      const property = properties[name] as Schema;
      expect(property, name).to.include.keys("description", "default");
      expect(property, name).to.have.any.keys("type", "anyOf", "enum");
      expect(property["x-aliases"] ?? [], name).to.deep.equal(aliases);
    }
    expect(Object.keys(properties)).to.have.length(Object.keys(generationSchema.shape).length);
    expect(properties.inference_steps).to.deep.include({
      type: "integer",
      minimum: 1,
      maximum: 200,
      default: 8,
    });
    expect(properties.batch_size).to.deep.include({ type: "integer", minimum: 1, maximum: 8, default: 2 });
    expect(properties.bpm?.anyOf).to.deep.equal([
      { type: "integer", minimum: 30, maximum: 300 },
      { type: "null" },
    ]);
    expect(properties.audio_format?.enum).to.deep.equal([
      "mp3",
      "flac",
      "opus",
      "aac",
      "ogg",
      "wav",
      "wav24",
      "wav32",
    ]);
  });

  it("describes every parameter of every endpoint", () => {
    const untold: string[] = [];
    const look = (place: string, name: string, schema: Schema) => {
      if (schema.description === undefined && schema.properties === undefined)
        untold.push(`${place} ${name}`);
      for (const [key, inner] of Object.entries(schema.properties ?? {})) look(place, key, inner);
    };
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const { requestBody, parameters } of Object.values(methods)) {
        for (const { schema } of Object.values(requestBody?.content ?? {}))
          look(path, "body", schema as Schema);
        for (const { name, schema } of parameters.filter((parameter) => parameter.in === "query"))
          look(path, name, schema as Schema);
      }
    }
    expect(untold).to.deep.equal([]);
    expect(bodyOf("/format_input").properties.param_obj?.properties).to.include.keys("bpm", "key_scale");
  });

  it("lists required fields and file fields", () => {
    expect(bodyOf("/v1/lora/load").required).to.deep.equal(["lora_path"]);
    expect(bodyOf("/v1/training/start").required).to.deep.equal(["tensor_dir"]);
    const form = document.paths["/release_task"]?.post?.requestBody?.content["multipart/form-data"]?.schema;
    expect((form as Schema).properties).to.include.keys("src_audio", "reference_audio", "prompt");
    const parameters = document.paths["/v1/tasks"]?.get?.parameters.map(({ name }) => name);
    expect(parameters).to.deep.equal([
      "state",
      "favorite",
      "analysis",
      "temporary",
      "retakes_of",
      "search",
      "task_ids",
      "sort",
      "offset",
      "limit",
    ]);
  });

  it("every operation has a unique id and declares exactly the parameters of its path", () => {
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.values(methods).map((operation) => ({ path, ...operation })),
    );
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).to.equal(ids.length);
    for (const { path, parameters } of operations) {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const described = parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
      expect(described, path).to.deep.equal(named);
    }
  });
});

describe("access to the API documentation", () => {
  const server = serverForAll({ SVC_API_KEY: "k1" });

  it("a client needs no key to get the OpenAPI document", async () => {
    const { status, body } = await server.client.get("/openapi.json");
    expect(status).to.equal(200);
    expect(body).to.include({ openapi: "3.1.1" });
    expect(body.paths).to.deep.equal(JSON.parse(JSON.stringify(document.paths)));
  });
});
