/** The bottom edge of the window: the notice, and the player. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.js";
import { t } from "./language.js";

const NOTICE_MS = 5000;
const ERROR_MS = 30_000;

/** Publishes its height as --dock, so that nothing ends up behind it. */
export function Dock({ children }: { children: ComponentChildren }) {
  const dock = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = dock;
    if (current === null) return;
    const observer = new ResizeObserver(() =>
      document.documentElement.style.setProperty("--dock", `${current.offsetHeight}px`),
    );
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="dock" ref={dock}>
      {children}
    </div>
  );
}

export interface NoticeText {
  text: string;
  isError: boolean;
  /** Whether the notice is out of date once the server answers. */
  isUnreachable?: boolean;
  /** Stays until another notice replaces it: the action still waits for the server. */
  isWaiting?: boolean;
  /** Undoes the action that the notice reports, or shows its song. */
  action?: { label: string; run: () => void } | undefined;
}

/** Notices disappear after a while, errors after a longer one, but none that the user points at or has not seen. */
export function Notice({ notice, onClose }: { notice: NoticeText | null; onClose: () => void }) {
  const [isHeld, setHeld] = useState(false);
  const isHidden = useHidden();
  useLayoutEffect(() => setHeld(false), [notice]);
  useEffect(() => {
    if (notice === null || notice.isWaiting || isHeld || isHidden) return;
    const timer = setTimeout(onClose, notice.isError ? ERROR_MS : NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice, isHeld, isHidden]);
  return (
    <div
      class="notice"
      role="status"
      onPointerEnter={() => setHeld(true)}
      onPointerLeave={() => setHeld(false)}
    >
      {notice && (
        <p class={notice.isError ? "failed" : ""}>
          {notice.text}{" "}
          {notice.action && (
            <Button
              onClick={() => {
                onClose();
                // The action may show a notice of its own.
                notice.action?.run();
              }}
            >
              {notice.action.label}
            </Button>
          )}
          <Button class="plain" aria-label={t("Close message")} onClick={onClose}>
            ✕
          </Button>
        </p>
      )}
    </div>
  );
}

/** Whether the tab is hidden. */
function useHidden(): boolean {
  const [isHidden, setHidden] = useState(document.hidden);
  useEffect(() => {
    const onChange = () => setHidden(document.hidden);
    document.addEventListener("visibilitychange", onChange);
    return () => document.removeEventListener("visibilitychange", onChange);
  }, []);
  return isHidden;
}
