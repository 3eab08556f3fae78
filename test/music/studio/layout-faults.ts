/** Finds what a user would see as broken in the layout of a page: overflow, covered controls, cut text. */
import type { Page } from "playwright-core";

/** Finds faults of the page as it is now. Moves the focus. @returns a line for each fault */
export async function layoutFaults(page: Page): Promise<string[]> {
  // tsx wraps named functions in __name, which the page does not have.
  return page.evaluate(`(() => { const __name = (value) => value; return (${findFaults})(); })()`);
}

/** Runs in the page. */
function findFaults(): string[] {
  const CONTROLS = "button, a[href], input, select, textarea, summary, [role=slider], label.drop";
  /** Parts that must contain their controls. */
  const CONTAINERS =
    "header, form, fieldset, .queue > li, .library > li, .player, .notice p, .details, section, main";
  const SLACK_PX = 1;
  /** Further songs look like the first ones, and scrolling to them would close the first one's menu. */
  const FURTHER_SONGS = ".library > li:nth-child(n + 4)";
  const from = scrollY;
  const faults: string[] = [];
  const nameOf = (element: Element) =>
    `${element.localName}.${element.className} "${(element.getAttribute("aria-label") ?? element.textContent ?? "").trim().slice(0, 40)}"`;
  const isShown = (element: Element) => {
    const { width, height } = element.getBoundingClientRect();
    return (
      element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && width > 1 && height > 1
    );
  };
  const isScrollable = (element: Element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  /** Width of a text in the font of an element, in pixels. */
  const textWidth = (element: Element, text: string) => {
    const probe = document.createElement("span");
    const { font, letterSpacing } = getComputedStyle(element);
    Object.assign(probe.style, { font, letterSpacing, position: "absolute", whiteSpace: "pre" });
    probe.textContent = text;
    document.body.append(probe);
    const { width } = probe.getBoundingClientRect();
    probe.remove();
    return width;
  };
  /** Text that a field shows: its chosen option, or its placeholder. Typed text may be longer than its field. */
  const shownText = (field: Element) => {
    if (field instanceof HTMLSelectElement) return field.selectedOptions[0]?.text ?? "";
    return field instanceof HTMLInputElement ? field.placeholder : "";
  };
  const SELECT_ARROW_PX = 16;
  const isCut = (element: Element) => {
    const text = shownText(element);
    if (text === "") {
      const isWider = element.scrollWidth > element.clientWidth + SLACK_PX;
      const isHigher = element.matches(".name") && element.scrollHeight > element.clientHeight + SLACK_PX;
      return !isScrollable(element) && (isWider || isHigher);
    }
    const { paddingLeft, paddingRight, appearance } = getComputedStyle(element);
    const arrow = element.localName === "select" && appearance !== "none" ? SELECT_ARROW_PX : 0;
    const room =
      element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight) - arrow;
    return textWidth(element, text) > room + SLACK_PX;
  };

  const isTwoLines = (element: Element) =>
    element.clientHeight > 1.9 * Number.parseFloat(getComputedStyle(element).fontSize);

  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth + SLACK_PX) {
    faults.push(`the page is ${scrollWidth} px wide in a window of ${clientWidth} px`);
  }
  for (const element of document.querySelectorAll(`${CONTROLS}, .name, .facts, .state, h2, h3, legend`)) {
    if (!isShown(element) || element.closest(`[title], ${FURTHER_SONGS}`) !== null) continue;
    if (
      element.matches("input[type=checkbox], input[type=range], input[type=file], [role=slider], label.drop")
    )
      continue;
    if (isCut(element)) faults.push(`cut: ${nameOf(element)} ${shownText(element)}`);
  }
  for (const element of document.querySelectorAll("summary .faint")) {
    const text = element.textContent ?? "";
    const isBroken = element.getClientRects().length > 0 && !/[\s·]/.test(text) && isTwoLines(element);
    if (isBroken) faults.push(`broken word: ${text}`);
  }
  for (const element of document.querySelectorAll<HTMLElement>(CONTROLS)) {
    if (!isShown(element) || element.closest(`.hidden, ${FURTHER_SONGS}`) !== null) continue;
    const box = element.getBoundingClientRect();
    const parent = element.parentElement?.closest(CONTAINERS);
    const container = parent && !isScrollable(parent) ? parent.getBoundingClientRect() : null;
    if (container && (box.left < container.left - SLACK_PX || box.right > container.right + SLACK_PX)) {
      faults.push(
        `outside: ${nameOf(element)} ${box.left.toFixed(0)} to ${box.right.toFixed(0)}, container to ${container.right.toFixed(0)}`,
      );
    }
    // As with Tab.
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    const { left, top, width, height } = element.getBoundingClientRect();
    // A high text field may not fit between the edges, so its upper part counts too.
    const at = [height / 2, Math.min(height / 2, 12)].map((below) =>
      document.elementFromPoint(left + width / 2, top + below),
    );
    if (
      !at.some((hit) => hit !== null && (element.contains(hit) || element.closest("label")?.contains(hit)))
    ) {
      faults.push(`covered: ${nameOf(element)} by ${at[0] ? nameOf(at[0]) : "nothing: off the screen"}`);
    }
  }
  scrollTo(0, from);
  return faults;
}
