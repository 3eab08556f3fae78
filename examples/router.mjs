/**
 * Adds the music service to an Express application, under a path of its own.
 *
 * node examples/router.mjs [port]
 * node examples/client.mjs "slow bossa nova, nylon guitar" song.mp3 http://127.0.0.1:8080/music
 */
import { once } from "node:events";
import { createEngine, loadConfig, router } from "carillon";
import express from "express";

const config = loadConfig(process.env);
const engine = createEngine(config, console.error);
const music = router({ config, engine });

const app = express();
app.use("/music", music);
app.get("/", (_request, response) => response.send("songs under /music"));
await music.ready;
const server = app.listen(Number(process.argv[2] ?? 8080), "127.0.0.1");
await once(server, "listening");
console.log(`music on http://127.0.0.1:${server.address().port}/music`);

await once(process, "SIGTERM");
server.close();
await music.close();
await engine.close();
