/** The bridge's messages as they arrive, newest first. */

const KEPT_LINES = 60;
const COMMAND_LINE = /^API OK: (?!Read |List |Inspect )/;

/** @param onCommand called after a message that somebody's command succeeded */
export function followMessages(list: HTMLElement, onCommand: () => void): void {
  const source = new EventSource("/overlay/events");
  source.addEventListener("message", (event) => {
    const { text, shownAtMs } = JSON.parse(event.data) as { text: string; shownAtMs: number };
    list.prepend(line(text, shownAtMs));
    while (list.children.length > KEPT_LINES) list.lastElementChild?.remove();
    if (COMMAND_LINE.test(text)) onCommand();
  });
}

function line(text: string, shownAtMs: number): HTMLElement {
  const time = document.createElement("time");
  time.textContent = new Date(shownAtMs).toLocaleTimeString();
  const item = document.createElement("li");
  item.append(time, ` ${text}`);
  item.classList.toggle("failed", text.startsWith("API FAIL"));
  return item;
}
