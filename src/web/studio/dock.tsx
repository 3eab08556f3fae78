/** The bottom edge of the window: the notice, and the player. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./button.js";
import { t } from "./language.js";

const NOTICE_MS = 5000;

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
  /** Undoes the action that the notice reports, or shows its song. */
  action?: { label: string; run: () => void } | undefined;
}

/** Results disappear after a while, errors stay until dismissed. */
export function Notice({ notice, onClose }: { notice: NoticeText | null; onClose: () => void }) {
  useEffect(() => {
    if (notice === null || notice.isError) return;
    const timer = setTimeout(onClose, NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice]);
  return (
    <div class="notice" role="status">
      {notice && (
        <p class={notice.isError ? "failed" : ""}>
          {notice.text}{" "}
          {notice.action && (
            <Button
              onClick={() => {
                notice.action?.run();
                onClose();
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
