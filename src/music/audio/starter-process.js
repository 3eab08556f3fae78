/**
 * A small process that starts programs for a large one, over a socket in a private folder. A request's body is the
 * program's stdin, the response's its stdout; the trailers tell how it ended. Whoever hangs up kills it. In JavaScript,
 * as it starts from the file itself, whether or not the rest is compiled.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const COMPLAINT_LIMIT = 4096;
/** A socket's path has 104 bytes on some systems. */
const LONGEST_FOLDER = 80;
const folder = mkdtempSync(join(tmpdir().length < LONGEST_FOLDER ? tmpdir() : "/tmp", "carillon-"));
const socketPath = process.platform === "win32" ? `\\\\.\\pipe\\${basename(folder)}` : join(folder, "socket");
/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();

/** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
function serve(request, response) {
  const { command, env, stdin, stdout } = JSON.parse(decodeURIComponent(String(request.headers.start)));
  const child = spawn(command[0], command.slice(1), { stdio: [stdin, stdout, "pipe"], env });
  running.add(child);
  let complaint = "";
  child.stderr?.setEncoding("utf8").on("data", (/** @type {string} */ text) => {
    if (complaint.length < COMPLAINT_LIMIT) complaint += text;
  });
  // What breaks a pipe ends the program too, and is told by its end.
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.on("error", () => {});
  child.on("spawn", () => {
    response.flushHeaders();
    if (child.stdin === null) request.resume();
    else request.pipe(child.stdin);
    child.stdout?.pipe(response, { end: false });
  });
  child.on("error", (error) => refuse(response, error));
  child.on("close", (code, signal) => {
    running.delete(child);
    const end = () => {
      response.addTrailers({ end: encodeURIComponent(JSON.stringify({ code, signal, complaint })) });
      response.end();
    };
    // What nobody reads any more is let through: an answer to half a request would be lost with the connection.
    if (request.readableEnded) end();
    else request.once("end", end).unpipe().resume();
  });
  response.on("close", () => child.kill("SIGKILL"));
}

/** @param {import("node:http").ServerResponse} response @param {unknown} error */
function refuse(response, error) {
  const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
  response.writeHead(500, { failure: encodeURIComponent(JSON.stringify({ code, message })) }).end();
}

const server = createServer({ maxHeaderSize: 2 ** 20, requestTimeout: 0 }, (request, response) => {
  try {
    serve(request, response);
  } catch (error) {
    refuse(response, error);
  }
});
server.on("error", (error) => {
  console.error(`carillon, the process that starts programs: ${error.message}`);
  // One that listens has only failed to take a connection, whose client is told by its socket.
  if (!server.listening) process.exit(1);
});
// Signals of a terminal are for the large process, which ends this one.
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.on(signal, () => {});
process.on("disconnect", () => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
  process.exit();
});
server.listen(socketPath, () => process.send?.({ folder, socketPath }));
