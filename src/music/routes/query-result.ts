import { sendEnvelope } from "../envelope.js";
import { RequestError } from "../errors.js";
import { BODY_RULES } from "../request/body.js";
import { parseTaskIds } from "../request/service.js";
import type { MusicService } from "../service.js";
import type { TaskStatusItem } from "../task-status.js";
import type { Route } from "./route.js";

/** About what a thousand finished tasks take, each of two songs with lyrics. */
const MAX_ANSWER_BYTES = 8 * 2 ** 20;

/** POST /query_result: the states of tasks, one item per id asked for, repetitions included. */
export const queryResult: Route =
  ({ service, bodies }) =>
  async (request, response) => {
    const { fields } = await bodies.read(request, BODY_RULES.queryResult);
    sendEnvelope(response, await statesOf(parseTaskIds(fields), service));
  };

/** Every task is read once, one after the other, and no more of them than one answer may hold. */
async function statesOf(ids: readonly string[], service: MusicService): Promise<TaskStatusItem[]> {
  const known = new Map<string, TaskStatusItem>();
  const items: TaskStatusItem[] = [];
  let bytes = 0;
  for (const id of ids) {
    const item = known.get(id) ?? ((await service.query([id]))[0] as TaskStatusItem);
    known.set(id, item);
    items.push(item);
    bytes += Buffer.byteLength(item.result);
    if (bytes > MAX_ANSWER_BYTES) {
      throw new RequestError(
        `task_id_list asks for more than ${MAX_ANSWER_BYTES} bytes of results at a time: ask for fewer of its ${ids.length} tasks`,
      );
    }
  }
  return items;
}
