/**
 * Small process that starts programs for the server, over a socket in a private folder. The body of a request is the
 * program's stdin, the response is its stdout, and the trailers contain its exit status. Closing the connection kills
 * the program. It is JavaScript because it must start without compilation.
 */
import { spawn } from "node:child_process";
import { closeSync, constants, fstatSync, mkdirSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

const STDERR_LIMIT = 4096;
/** Socket paths are limited to 104 bytes on some systems. */
const LONGEST_FOLDER = 80;
const parent = tmpdir().length < LONGEST_FOLDER ? tmpdir() : "/tmp";
// The folder may have been deleted since the server started.
mkdirSync(parent, { recursive: true });
const folder = mkdtempSync(join(parent, "carillon-"));
const socketPath = join(folder, "socket");
/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();

/** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
function serve(request, response) {
  const { command, env, stdin, stdout, input } = JSON.parse(
    decodeURIComponent(String(request.headers.start)),
  );
  const file = input === undefined ? [] : [openInput(input)];
  // The program has its own process group, so Ctrl-C in a terminal stops only the server, which lets it finish.
  const child = spawn(command[0], command.slice(1), {
    stdio: [stdin, stdout, "pipe", ...file],
    env,
    detached: true,
  });
  file.forEach(closeSync);
  running.add(child);
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (/** @type {string} */ text) => {
    if (stderr.length < STDERR_LIMIT) stderr += text;
  });
  // Pipe errors are ignored: they also end the child, and the child's exit status reports the failure.
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
      response.addTrailers({ end: encodeURIComponent(JSON.stringify({ code, signal, stderr })) });
      response.end();
    };
    // Discards input that is no longer read: answering an incomplete request could reset the connection and lose
    // the answer.
    if (request.readableEnded) end();
    else request.once("end", end).unpipe().resume();
  });
  response.on("close", () => child.kill("SIGKILL"));
}

/**
 * Opens the input file that the server has checked. Does not block if a named pipe has replaced it.
 * @param {import("./starter.js").ProgramInput} input
 */
function openInput({ path, device, inode }) {
  let file;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (error);
    throw code === "EMFILE" || code === "ENFILE" ? error : inputFault();
  }
  const { dev, ino } = fstatSync(file, { bigint: true });
  if (String(dev) === device && String(ino) === inode) return file;
  closeSync(file);
  throw inputFault();
}

function inputFault() {
  return Object.assign(new Error("the input file was removed or replaced"), { code: "INPUT" });
}

/** @param {import("node:http").ServerResponse} response @param {unknown} error */
function refuse(response, error) {
  // The program has started. Its end reports the failure.
  if (response.headersSent) return;
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
  console.error(`carillon starter process: ${error.message}`);
  // If the socket still listens, only one connection has failed, and the other end of it gets an error.
  if (!server.listening) process.exit(1);
});
// Terminal signals are for the server, which ends this process.
for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.on(signal, () => {});
process.on("disconnect", () => {
  for (const child of running) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
  process.exit();
});
server.listen(socketPath, () => process.send?.({ folder, socketPath }));
