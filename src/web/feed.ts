/** The bridge's messages as they arrive, newest first. */

const KEPT_LINES = 60;
const COMMAND_LINE = /^API OK: (?!Read |List |Inspect )/;
const RETRY_INTERVAL_MS = 3000;

/**
 * Follows the messages for as long as the page is open, through every restart of the bridge.
 * @param onCommand called after a message that somebody's command succeeded
 * @param onReturn called when messages come again after they broke off: it may be another city
 */
export function followMessages(list: HTMLElement, onCommand: () => void, onReturn: () => void): void {
  let wasBroken = false;
  const open = () => {
    const source = new EventSource("/overlay/events");
    source.addEventListener("message", (event) => {
      const { text, shownAtMs } = JSON.parse(event.data) as { text: string; shownAtMs: number };
      list.prepend(line(text, shownAtMs));
      while (list.children.length > KEPT_LINES) list.lastElementChild?.remove();
      if (COMMAND_LINE.test(text)) onCommand();
    });
    source.addEventListener("open", () => {
      if (wasBroken) onReturn();
      wasBroken = false;
    });
    source.addEventListener("error", () => {
      wasBroken = true;
      // The browser tries again by itself only where it found nobody, and not in all browsers even then.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY_INTERVAL_MS);
    });
  };
  open();
}

function line(text: string, shownAtMs: number): HTMLElement {
  const time = document.createElement("time");
  time.textContent = new Date(shownAtMs).toLocaleTimeString();
  const item = document.createElement("li");
  item.append(time, ` ${text}`);
  item.classList.toggle("failed", text.startsWith("API FAIL"));
  return item;
}
