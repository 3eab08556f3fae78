/**
 * Makes a song with the typed client, which also works in browsers: submits it, shows progress, saves the audio and
 * deletes the task.
 *
 * node examples/follow.mjs "slow bossa nova, nylon guitar" song.mp3 [http://127.0.0.1:8001]
 */
import { writeFile } from "node:fs/promises";
import { Carillon } from "carillon/client";

const [prompt, file, url = "http://127.0.0.1:8001"] = process.argv.slice(2);
const carillon = new Carillon({ url });

const parameters = { prompt, audio_duration: 10, batch_size: 1 };
const onProgress = ({ stage, progress }) => console.log(`${stage} ${Math.round(progress * 100)} %`);
const task = await carillon.make(parameters, { onProgress }).catch((error) => {
  console.error(
    error instanceof TypeError
      ? `No server answers at ${url}. Start one with: npx carillon serve`
      : error.message,
  );
  process.exit(1);
});
const [song] = task.songs;
await writeFile(file, Buffer.from(await (await carillon.download(song)).arrayBuffer()));
console.log(`seed ${song.seed}, ${song.metas.bpm} bpm, ${song.metas.keyscale}`);
await carillon.delete(task.task_id, "succeeded");
