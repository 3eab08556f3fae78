/** Runs the user's actions, and says how they ended or that the server is slow. */
import { type StateUpdater, useRef } from "preact/hooks";
import { UnreachableError } from "./api.js";
import type { NoticeText } from "./dock.js";
import { t } from "./language.js";
import { notifyTabs, refresh } from "./live.js";
import { errorInWords } from "./notes.js";

/** An action that takes longer says so. */
const WAITING_MS = 1000;

type SetNotice = (next: StateUpdater<NoticeText | null>) => void;
type Fail = (words: string, error: unknown) => void;

export function errorNotice(error: unknown): NoticeText {
  return { text: errorInWords(error), isError: true, isUnreachable: error instanceof UnreachableError };
}

export function useAttempt(setNotice: SetNotice) {
  const running = useRef(new Set<string>());
  /**
   * Runs an action, then shows `done` or the error, which is a notice unless `fail` shows it elsewhere.
   * @returns whether the action succeeded
   */
  const attempt = async (
    work: () => Promise<unknown>,
    done = "",
    fail: Fail = (_, error) => setNotice(errorNotice(error)),
  ) => {
    const waiting = { text: t("Waiting for the server…"), isError: false, isWaiting: true };
    let isDone = false;
    setNotice(null);
    const timer = setTimeout(() => setNotice((now) => now ?? waiting), WAITING_MS);
    try {
      await work();
      isDone = true;
      if (done !== "") setNotice({ text: done, isError: false });
    } catch (error) {
      fail(errorInWords(error), error);
    } finally {
      clearTimeout(timer);
      setNotice((now) => (now === waiting ? null : now));
    }
    notifyTabs();
    await refresh();
    return isDone;
  };
  /** Makes a song. A second press of the same button while the first one waits for the server makes no second song. */
  const queueOnce = async (name: string, work: () => Promise<unknown>, fail?: Fail) => {
    if (running.current.has(name)) return;
    running.current.add(name);
    const once = () => work().finally(() => running.current.delete(name));
    await attempt(once, t("Queued."), fail);
  };
  return { attempt, queueOnce };
}
