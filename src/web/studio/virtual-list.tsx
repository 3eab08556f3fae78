/** A list that renders only the rows in view. The page scrolls, not the list. */
import { observeWindowOffset, observeWindowRect, Virtualizer, windowScroll } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

const ROW_HEIGHT = 84;
const OVERSCAN = 5;

interface VirtualListProps {
  count: number;
  /** Key of a row. Pass the same function at every render: a new one makes the list read all keys again. */
  keyOf: (index: number) => string;
  row: (index: number) => ComponentChildren;
  /** Called with the first and the last visible row after scrolling. */
  onView: (first: number, last: number) => void;
}

export function VirtualList({ count, keyOf, row, onView }: VirtualListProps) {
  const list = useRef<HTMLUListElement>(null);
  const [, redraw] = useState(0);
  const [top, setTop] = useState(0);
  // Scrolling renders only this list; rows that stay in view are not rendered again.
  const drawn = useMemo(() => new Map<number, ComponentChildren>(), [row]);
  const options = {
    count,
    getScrollElement: () => window,
    estimateSize: () => ROW_HEIGHT,
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
  useLayoutEffect(() => {
    virtual._willUpdate();
    const seen = (list.current?.getBoundingClientRect().top ?? 0) + scrollY;
    if (Math.abs(seen - top) > 1) setTop(seen);
  });
  const first = virtual.range?.startIndex ?? 0;
  const last = virtual.range?.endIndex ?? 0;
  useEffect(() => onView(first, last), [first, last]);
  return (
    <ul class="library" ref={list} style={{ height: `${virtual.getTotalSize()}px` }}>
      {virtual.getVirtualItems().map(({ index, key, start }) => {
        if (!drawn.has(index)) drawn.set(index, row(index));
        return (
          <li
            key={String(key)}
            data-index={index}
            aria-setsize={count}
            aria-posinset={index + 1}
            ref={virtual.measureElement}
            style={{ transform: `translateY(${start - top}px)` }}
          >
            {drawn.get(index)}
          </li>
        );
      })}
    </ul>
  );
}
