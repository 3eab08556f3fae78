/** An S3-compatible server for tests. */
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { listenLocally } from "../../local-server.js";
import { temporaryDirectory } from "../tasks.js";

const require = createRequire(import.meta.url);
const S3rver = require("@20minutes/s3rver") as new (
  options: object,
) => { run(): Promise<AddressInfo>; close(): Promise<void>; allowMismatchedSignatures: boolean };

export const BUCKET = "songs";

const ACCESS = {
  AWS_ACCESS_KEY_ID: "S3RVER",
  AWS_SECRET_ACCESS_KEY: "S3RVER",
  AWS_REGION: "us-east-1",
};

export interface S3Server {
  /** Environment variables that point the AWS SDK to this server. */
  environment: Record<string, string>;
  /** Turns signature checks on or off. While checks are on, the server rejects every bucket request. */
  checkSignatures(isChecking: boolean): void;
  close(): Promise<void>;
}

/** S3 that a test makes refuse or ignore requests. */
export interface HostileS3 extends Pick<S3Server, "environment" | "close"> {
  /** Returns the status of a refusal, "hang" for no answer, or null to serve the request. */
  behave: (method: string, path: string) => number | "hang" | null;
}

export async function startHostileS3(): Promise<HostileS3> {
  const s3 = await startS3();
  const target = s3.environment.AWS_ENDPOINT_URL_S3 as string;
  const proxy = createServer((incoming, response) => {
    const { method = "", url = "", headers } = incoming;
    const behaviour = hostile.behave(method, url);
    if (behaviour === "hang") return;
    if (behaviour !== null) {
      incoming.resume().on("end", () => response.writeHead(behaviour).end());
      return;
    }
    const outgoing = request(target + url, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode as number, answer.headers);
      answer.pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    incoming.pipe(outgoing);
  });
  const { url } = await listenLocally(proxy);
  const hostile: HostileS3 = {
    environment: { ...s3.environment, AWS_ENDPOINT_URL_S3: url },
    behave: () => null,
    close: async () => {
      proxy.closeAllConnections();
      proxy.close();
      await s3.close();
    },
  };
  return hostile;
}

/** @param port the port to listen on; 0: any free port */
export async function startS3(port = 0): Promise<S3Server> {
  const directory = temporaryDirectory();
  const configureBuckets = [{ name: BUCKET }];
  // Accept wrong signatures, because s3rver computes the signatures of bucket requests differently from S3.
  const allowMismatchedSignatures = true;
  const server = new S3rver({
    ...{ address: "127.0.0.1", port, directory, silent: true, configureBuckets },
    allowMismatchedSignatures,
  });
  const address = await server.run();
  return {
    environment: { ...ACCESS, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${address.port}` },
    checkSignatures: (isChecking) => {
      server.allowMismatchedSignatures = !isChecking;
    },
    close: () => server.close().catch(ifNotClosed),
  };
}

function ifNotClosed(error: Error & { code?: string }): void {
  if (error.code !== "ERR_SERVER_NOT_RUNNING") throw error;
}
