/** Command line: one file per command. Engine, server and city are imported only by the commands that use them. */
import { createRequire } from "node:module";
import { Command } from "commander";
import { loadConfig } from "../config.js";
import { cityCommand } from "./city.js";
import { rejectEmptyValues } from "./command.js";
import { generateCommand } from "./generate.js";
import { cudaCommand, modelsCommand } from "./models.js";
import { preprocessCommand } from "./preprocess.js";
import { radioCommand } from "./radio.js";
import { fleetCommand, serveCommand } from "./serve.js";

const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

const mcpCommand = new Command("mcp")
  .description("serve MCP tools for the running city and music service on standard input and output")
  .action(async () => {
    const { serveStdio } = await import("../mcp/stdio.js");
    await serveStdio(loadConfig());
  });

const doctorCommand = new Command("doctor")
  .description("check the requirements of a server and show how to fix what is missing")
  .action(async () => {
    const { doctor } = await import("./doctor.js");
    if (!(await doctor())) process.exitCode = 1;
  });

/** Runs the command of this process's arguments. @param path path of the `carillon` script */
export async function run(path: string): Promise<void> {
  await new Command("carillon")
    .description("Music generation server, and a bridge to a city-building game")
    .version(version)
    .hook("preAction", (_program, command) => rejectEmptyValues(command))
    .addCommand(serveCommand(path))
    .addCommand(
      fleetCommand(path, "gateway", "accepts tasks for the workers and answers clients; loads no model"),
    )
    .addCommand(fleetCommand(path, "worker", "makes the songs that gateways accept"))
    .addCommand(cityCommand)
    .addCommand(mcpCommand)
    .addCommand(generateCommand)
    .addCommand(radioCommand)
    .addCommand(preprocessCommand)
    .addCommand(doctorCommand)
    .addCommand(modelsCommand)
    .addCommand(cudaCommand)
    .parseAsync();
}
