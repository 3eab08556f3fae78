/** Parts of the page that are loaded when they are first shown, so that the page itself opens fast. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "./button.js";
import { t } from "./language.js";

/** Component whose module is loaded when it is first shown. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>) {
  let loaded: ComponentType<Props> | null = null;
  return function Lazy(props: Props) {
    const [failures, setFailures] = useState(0);
    const [isFailed, setFailed] = useState(false);
    // A component is a function: useState would call it.
    const [, setLoaded] = useState(() => loaded);
    useEffect(() => {
      if (loaded !== null) return;
      load().then(
        (component) => {
          loaded = component;
          setLoaded(() => component);
        },
        () => setFailed(true),
      );
    }, [failures]);
    const Loaded = loaded;
    if (Loaded !== null) return <Loaded {...props} />;
    if (!isFailed) return <p class="faint">{t("Loading…")}</p>;
    return (
      <p class="failed">
        {t("This part of the page could not be loaded.")}{" "}
        <Button
          onClick={() => {
            setFailed(false);
            setFailures(failures + 1);
          }}
        >
          {t("Try again")}
        </Button>
      </p>
    );
  };
}
