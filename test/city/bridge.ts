/** City bridge for tests: the real server on a free port, with a paused city. */
import { startGameBridge } from "../../src/city/index.js";
import type { BridgeServer } from "../../src/city/server.js";
import { EmbeddedGame } from "../../src/city/simulation/embedded-game.js";
import type { World } from "../../src/city/simulation/state/world.js";
import { createLogger } from "../../src/system/log.js";
import { freePort } from "../local-server.js";
import { temporaryDirectory } from "../music/tasks.js";

// biome-ignore lint/suspicious/noExplicitAny: answers are checked by the tests, key by key
export type Answer = any;

export const SILENT = createLogger("silent");

/** Sends requests to a bridge and parses the responses. */
export class BridgeClient {
  constructor(readonly url: string) {}

  async get(path: string): Promise<{ status: number; body: Answer }> {
    return read(await fetch(this.url + path));
  }

  async post(command: string, body: unknown = {}): Promise<{ status: number; body: Answer }> {
    return this.postText(command, JSON.stringify(body));
  }

  async postText(command: string, body: string): Promise<{ status: number; body: Answer }> {
    return read(await fetch(`${this.url}/commands/${command}`, { method: "POST", body }));
  }

  /** Returns the body of a GET request; throws unless the status is 200. */
  async state(path: string): Promise<Answer> {
    return succeeded(path, await this.get(path));
  }

  async run(command: string, body: unknown = {}): Promise<Answer> {
    return succeeded(command, await this.post(command, body));
  }

  /** Sends a command that must be rejected and returns the error message. */
  async refusal(command: string, body: unknown = {}): Promise<string> {
    const { status, body: answer } = await this.post(command, body);
    if (status !== 500 || answer.ok !== false) throw new Error(`${command} answered ${status}`);
    return answer.error;
  }

  /** Saves the city and waits until the save is listed. Resolves with its path. */
  async save(name: string): Promise<string> {
    const { path } = await this.run("save", { name });
    const isListed = ({ saves }: Answer) => saves.some((save: Answer) => save.path === path);
    await eventually(() => this.state("/state/saves"), isListed);
    return path;
  }

  /** Whether the bridge responds. */
  answers(): Promise<boolean> {
    return this.get("/health").then(
      () => true,
      () => false,
    );
  }

  /** Waits until the bridge responds, or no longer does. */
  async untilAnswers(isUp = true): Promise<void> {
    await eventually(
      () => this.answers(),
      (is) => is === isUp,
    );
  }

  road(x: number, z: number, toX: number, toZ: number, more: object = {}): Promise<Answer> {
    return this.run("build-road", { start: { x, z }, end: { x: toX, z: toZ }, ...more });
  }
}

async function read(response: Response): Promise<{ status: number; body: Answer }> {
  return { status: response.status, body: await response.json() };
}

function succeeded(what: string, { status, body }: { status: number; body: Answer }): Answer {
  if (status !== 200) throw new Error(`${what} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

export interface TestBridge {
  client: BridgeClient;
  game: EmbeddedGame;
  city: World;
  savesDirectory: string;
  /** Stops the server, waits for `whileAway`, and starts the server again on `port`. */
  restart(port: number, whileAway: () => Promise<void>): Promise<void>;
}

export interface TestBridgeOptions {
  map?: "empty" | "highway";
  allowedOrigins?: readonly string[];
}

/** Starts a bridge before each test of the enclosing suite and closes it afterwards. */
export function bridgeForEach({ map = "empty", allowedOrigins = [] }: TestBridgeOptions = {}): TestBridge {
  const bridge = {} as TestBridge;
  let server: BridgeServer;
  beforeEach(async () => {
    bridge.savesDirectory = temporaryDirectory();
    bridge.game = new EmbeddedGame({
      savesDirectory: bridge.savesDirectory,
      unlimitedMoney: true,
      onSaveFailed: (error) => {
        throw error;
      },
    });
    bridge.city = bridge.game.startCity({ seed: 7, map, paused: true });
    const serve = (port: number) => startGameBridge(bridge.game, { port, allowedOrigins, log: SILENT });
    server = await serve(await freePort());
    bridge.client = new BridgeClient(server.url);
    bridge.restart = async (port, whileAway) => {
      await server.close();
      await whileAway();
      server = await serve(port);
    };
  });
  afterEach(async () => {
    await server.close();
    await bridge.game.close();
  });
  return bridge;
}

/** Repeats a request until the response meets a condition. */
export async function eventually<T>(
  ask: () => Promise<T>,
  satisfies: (answer: T) => boolean,
  pauseMs = 50,
): Promise<T> {
  for (let endMs = performance.now() + 60_000; performance.now() < endMs; ) {
    const answer = await ask();
    if (satisfies(answer)) return answer;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  throw new Error("no response met the condition");
}
