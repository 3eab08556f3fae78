/** An S3-compatible server for tests. */
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
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
