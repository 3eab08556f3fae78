/**
 * Minimal client: submits a song to a running server, waits for it and saves it.
 *
 * node examples/client.mjs "slow bossa nova, nylon guitar" song.mp3 [http://127.0.0.1:8001]
 */
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const [prompt, file, server = "http://127.0.0.1:8001"] = process.argv.slice(2);

async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(server + path, { method: "POST", headers, body: JSON.stringify(body) }).catch(
    () => {
      console.error(`No server answers at ${server}. Start one with: npx carillon serve`);
      process.exit(1);
    },
  );
  const answer = await response.json();
  if (answer.detail) throw new Error(answer.detail);
  return answer.data;
}

const { task_id: id } = await post("/release_task", { prompt, audio_duration: 10, batch_size: 1 });
let song;
do {
  await sleep(500);
  const [task] = await post("/query_result", { task_id_list: [id] });
  [song] = JSON.parse(task.result);
  console.log(`${song.stage} ${Math.round(song.progress * 100)} %`);
} while (song.status === 0);
if (song.status === 2) throw new Error(song.error);
await writeFile(file, Buffer.from(await (await fetch(server + song.file)).arrayBuffer()));
