import { Validator } from "@seriousme/openapi-schema-validator";
import { expect } from "chai";
import { COMMAND_ROUTES, READ_ROUTES } from "../../src/city/embedded-routes.js";
import { bridgeForEach } from "./bridge.js";

describe("the OpenAPI document of the bridge", () => {
  const bridge = bridgeForEach();

  it("the OpenAPI document is valid and lists every read and command", async () => {
    const document = await bridge.client.state("/openapi.json");
    const { valid, errors } = await new Validator().validate(document);
    expect(valid, JSON.stringify(errors)).to.equal(true);
    expect(document.openapi).to.match(/^3\.1/);
    for (const { path } of READ_ROUTES) expect(document.paths[path]?.get, path).to.be.an("object");
    expect(document.paths["/state/buildings/{id}"].get.parameters[0]).to.include({ name: "id", in: "path" });
    for (const { path, fields } of COMMAND_ROUTES) {
      const { post } = document.paths[path];
      expect(post.summary, path).to.match(/^[A-Z]/);
      const { properties } = post.requestBody.content["application/json"].schema;
      expect(Object.keys(properties), path).to.have.members(Object.keys(fields.shape)).and.include("opId");
    }
  });

  it("the OpenAPI document has types, defaults and descriptions of fields", async () => {
    const { paths } = await bridge.client.state("/openapi.json");
    const schema = (path: string) =>
      paths[path].post.requestBody.content["application/json"].schema.properties;
    expect(schema("/commands/set-zone").radius).to.deep.equal({
      type: "number",
      default: 32,
      description: "Metres, above 0 and at most 256.",
    });
    expect(schema("/commands/build-road").start.properties.x).to.deep.include({ type: "number", default: 0 });
    expect(schema("/commands/new-city").map.enum).to.deep.equal(["highway", "empty"]);
    expect(schema("/commands/build-neighborhood").zoneMix.type).to.equal("object");
    const limit = paths["/state/problems"].get.parameters.find(
      ({ name }: { name: string }) => name === "limit",
    );
    expect(limit.schema.type).to.equal("integer");
  });

  it("the OpenAPI document is shown at /docs, also without a loaded city", async () => {
    bridge.game.unloadCity();
    const response = await fetch(`${bridge.client.url}/docs`);
    expect(response.headers.get("content-type")).to.include("text/html");
    expect(response.headers.get("content-security-policy")).to.include("script-src 'self'");
    expect(await response.text()).to.include("docs/swagger-ui-bundle.js");
  });
});
