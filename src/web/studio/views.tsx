/** The views of the page: form, songs and models. A phone shows one of them; a large screen shows the form beside the others. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.js";
import { t } from "./language.js";
import { queue } from "./live.js";
import { useStore } from "./store.js";

export type View = "make" | "songs" | "models";

/** The models have an address, so that links and the browser's Back button reach them. */
export const MODELS_ADDRESS = "#models";

/** Hook for the view. Back leads to the view before. @returns the view, and a function that shows another */
export function useView(first: View): [View, (view: View) => void] {
  const [view, setView] = useState<View>(location.hash === MODELS_ADDRESS ? "models" : first);
  useEffect(() => {
    const follow = () =>
      setView(location.hash === MODELS_ADDRESS ? "models" : ((history.state as View | null) ?? first));
    addEventListener("popstate", follow);
    return () => removeEventListener("popstate", follow);
  }, []);
  const show = (next: View) => {
    if (location.hash === MODELS_ADDRESS || (next !== view && areTabsShown()))
      history.pushState(next, "", `${location.pathname}${location.search}`);
    setView(next);
  };
  return [view, show];
}

/** Whether form and songs are two views, as on phones. */
function areTabsShown(): boolean {
  return document.querySelector("nav.views")?.checkVisibility() === true;
}

interface ViewTabsProps {
  view: View;
  onView: (view: View) => void;
}

/** Tabs, shown on phones. Each view begins at its top. */
export function ViewTabs({ view, onView }: ViewTabsProps) {
  const busy = useStore(queue).active.length;
  const tabs = useRef<HTMLElement>(null);
  const before = useRef(view);
  useLayoutEffect(() => {
    if (view !== before.current && tabs.current?.checkVisibility()) scrollTo(0, 0);
    before.current = view;
  }, [view]);
  const names: [View, string][] = [
    ["make", t("Make a song")],
    ["songs", t("Songs")],
  ];
  return (
    <nav class="views" ref={tabs} aria-label={t("Views")}>
      {names.map(([name, words]) => (
        <Button key={name} aria-current={view === name ? "page" : undefined} onClick={() => onView(name)}>
          {words}
          {name === "songs" && busy > 0 && <span class="badge">{busy}</span>}
        </Button>
      ))}
    </nav>
  );
}
