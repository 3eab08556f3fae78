/** MCP tools of the city, built from the OpenAPI document of its bridge. */
import type { OpenApiDocument, OpenApiOperation } from "../http/openapi.js";
import { queryOf, type ServiceClient } from "./service-client.js";
import {
  bodySchema,
  errorResult,
  objectSchema,
  querySchema,
  READ_ONLY,
  type Tool,
  textResult,
} from "./tool.js";

const CAPTURE = "/capture";

export function cityTools({ paths }: OpenApiDocument, client: ServiceClient): Tool[] {
  const reads = operationsOf(paths, "get").filter(([path]) => path !== CAPTURE);
  const commands = operationsOf(paths, "post");
  const look = paths[CAPTURE]?.get;
  return [
    readTool(reads, client),
    planTool(commands, client),
    ...(look ? [lookTool(look, client)] : []),
    ...commands.map(([path, operation]) => commandTool(path, operation, client)),
  ];
}

type Operations = readonly (readonly [path: string, operation: OpenApiOperation])[];

function operationsOf(paths: OpenApiDocument["paths"], method: "get" | "post"): Operations {
  return Object.entries(paths).flatMap(([path, methods]) => {
    const operation = methods[method];
    return operation ? [[path, operation] as const] : [];
  });
}

function readTool(reads: Operations, client: ServiceClient): Tool {
  const query = Object.assign({}, ...reads.map(([, operation]) => querySchema(operation)));
  const list = reads.map(([path, operation]) => {
    const names = Object.keys(querySchema(operation));
    return `${path}: ${operation.summary}${names.length > 0 ? ` (${names.join(", ")})` : ""}`;
  });
  const hasId = (path: string) => path.includes("{id}");
  return {
    definition: {
      name: "city_read",
      description: `Reads the city. Paths and their query parameters:\n${list.join("\n")}`,
      inputSchema: objectSchema(
        {
          path: { type: "string", enum: reads.map(([path]) => path) },
          id: { type: "integer", description: "In place of {id} in the path." },
          query: { type: "object", properties: query },
        },
        ["path"],
      ),
      annotations: READ_ONLY,
    },
    call: async ({ path, id, query: given }, { signal }) => {
      const known = reads.find(([each]) => each === path)?.[0];
      if (known === undefined) return errorResult(`Unknown path ${JSON.stringify(path)}`);
      if (hasId(known) && !Number.isInteger(id)) return errorResult(`${known} needs an id`);
      const target =
        known.replace("{id}", String(id)) + queryOf((given ?? {}) as object as Record<string, unknown>);
      return textResult(await client.get(target, signal));
    },
  };
}

function planTool(commands: Operations, client: ServiceClient): Tool {
  const planned = commands.filter(([, operation]) => bodySchema(operation).properties?.dryRun !== undefined);
  return {
    definition: {
      name: "city_plan",
      description:
        "Dry run of a command: returns what it would build and cost, or why it would be rejected. Changes nothing. " +
        "`fields` are the fields of the command's own tool. place-building with suggest=true lists free sites.",
      inputSchema: objectSchema(
        {
          command: { type: "string", enum: planned.map(([, { operationId }]) => operationId) },
          fields: { type: "object" },
        },
        ["command"],
      ),
      annotations: READ_ONLY,
    },
    call: async ({ command, fields }, { signal }) => {
      const path = planned.find(([, { operationId }]) => operationId === command)?.[0];
      if (path === undefined) return errorResult(`${JSON.stringify(command)} has no dry run`);
      return textResult(await client.post(path, { ...(fields as object), dryRun: true }, signal));
    },
  };
}

function lookTool(operation: OpenApiOperation, client: ServiceClient): Tool {
  return {
    definition: {
      name: "city_look",
      description:
        "Renders the map around a place as an image, coloured by a mode such as Traffic or LandValue.",
      inputSchema: objectSchema(querySchema(operation)),
      annotations: READ_ONLY,
    },
    call: async (args, { signal }) => {
      const answer = await client.get(CAPTURE + queryOf(args), signal);
      if (answer.status !== 200) return textResult(answer);
      const data = answer.bytes.toString("base64");
      return { content: [{ type: "image", data, mimeType: answer.mediaType }] };
    },
  };
}

function commandTool(path: string, operation: OpenApiOperation, client: ServiceClient): Tool {
  return {
    definition: {
      name: `city_${operation.operationId.replaceAll("-", "_")}`,
      description: operation.summary,
      inputSchema: bodySchema(operation),
      annotations: { readOnlyHint: false, openWorldHint: false },
    },
    call: async (args, { signal }) => textResult(await client.post(path, args, signal)),
  };
}
