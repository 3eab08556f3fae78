/**
 * A list that renders only the rows in view. The page scrolls, not the list. Rows stay where the user sees them when the
 * page changes above them.
 */
import {
  measureElement,
  observeWindowOffset,
  observeWindowRect,
  Virtualizer,
  windowScroll,
} from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const ROW_HEIGHT = 84;
const OVERSCAN = 2;
const NEAR_ROWS = 30;
const measure = measureElement<HTMLLIElement>;

interface VirtualListProps {
  count: number;
  /** Key of a row. Pass the same function at every render: a new one makes the list read all keys again. */
  keyOf: (index: number) => string;
  /** Returns the same object as long as the row is the same: rows that stay in view are then not rendered again. */
  row: (index: number) => ComponentChildren;
  /** Called with the first and the last visible row after scrolling; not while the list is hidden. */
  onView: (first: number, last: number) => void;
}

export function VirtualList({ count, keyOf, row, onView }: VirtualListProps) {
  const list = useRef<HTMLUListElement>(null);
  const [, redraw] = useState(0);
  const [top, setTop] = useState(0);
  /** The lowest row at this width that was read, the height to expect of others. Each other height costs a pass over all rows. */
  const lowest = useRef({ width: 0, height: ROW_HEIGHT });
  const options = {
    count,
    getScrollElement: () => window,
    estimateSize: () => lowest.current.height,
    measureElement: (...row: Parameters<typeof measure>) => {
      const height = row[0].firstElementChild?.matches(".waiting") ? 0 : measure(...row);
      // A phone that shows the form hides the list, and its rows have no height.
      if (height === 0) return lowest.current.height;
      if (height < lowest.current.height || innerWidth !== lowest.current.width)
        lowest.current = { width: innerWidth, height };
      return height;
    },
    getItemKey: keyOf,
    overscan: OVERSCAN,
    scrollMargin: top,
    observeElementRect: observeWindowRect,
    observeElementOffset: observeWindowOffset,
    scrollToFn: windowScroll,
    initialRect: { width: innerWidth, height: innerHeight },
    onChange: () => redraw((turn) => turn + 1),
  };
  const [virtual] = useState(() => new Virtualizer<Window, HTMLLIElement>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), []);
  const told = useRef({ first: 0, last: 0 });
  /** The first row in view, and its position in the page. */
  const anchor = useRef({ key: "", at: 0 });
  const settle = () => {
    const { current } = list;
    if (current === null || !current.checkVisibility()) return;
    const seen = current.getBoundingClientRect().top + scrollY;
    const { startIndex = 0, endIndex = 0 } = virtual.range ?? {};
    const { first, last } = told.current;
    if (Math.abs(seen - top) > 1) setTop(seen);
    else if (startIndex !== first || endIndex !== last) {
      told.current = { first: startIndex, last: endIndex };
      onView(startIndex, endIndex);
    }
    const start = (index: number) => seen + (virtual.measurementsCache[index]?.start ?? top) - top;
    const { key, at } = anchor.current;
    const kept = indexNear(startIndex, count, (index) => keyOf(index) === key);
    const isHeld = scrollY > 0 || current.matches(":hover");
    if (kept !== null && isHeld && Math.abs(start(kept) - at) > 1) keepInView(current, start(kept) - at);
    anchor.current = { key: keyOf(startIndex), at: start(startIndex) };
  };
  const latest = useRef(settle);
  latest.current = settle;
  useLayoutEffect(() => {
    virtual._willUpdate();
    settle();
  });
  useEffect(() => {
    const observer = new ResizeObserver(() => latest.current());
    for (const element of [list.current?.parentElement, document.body])
      if (element) observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <ul
      class="library"
      ref={list}
      style={{ height: `${virtual.getTotalSize()}px` }}
      onPointerLeave={(event) => event.currentTarget.style.removeProperty("margin-top")}
    >
      {virtual.getVirtualItems().map(({ index, key, start }) => (
        <li
          key={String(key)}
          data-index={index}
          aria-setsize={count}
          aria-posinset={index + 1}
          ref={virtual.measureElement}
          style={{ transform: `translateY(${start - top}px)` }}
        >
          {row(index)}
        </li>
      ))}
    </ul>
  );
}

/** Index closest to `from` for which `isWanted` holds, within a screen of rows; null if there is none. */
function indexNear(from: number, count: number, isWanted: (index: number) => boolean): number | null {
  for (let distance = 0; distance < NEAR_ROWS; distance++) {
    for (const index of [from - distance, from + distance])
      if (index >= 0 && index < count && isWanted(index)) return index;
  }
  return null;
}

/** Scrolls by as much as the rows moved. Where the page ends, a margin holds them under the pointer until it leaves. */
function keepInView(list: HTMLElement, moved: number): void {
  const before = scrollY;
  scrollBy({ top: moved, behavior: "instant" });
  const rest = before + moved - scrollY;
  if (rest < -1 && list.matches(":hover"))
    list.style.marginTop = `${Number.parseFloat(getComputedStyle(list).marginTop) - rest}px`;
}
