/** Changes of the colour scheme. Apart from appearance.ts, because the waveforms are a script of their own. */

/** Calls `redraw` when colours change. @returns a function that unsubscribes */
export function watchTheme(redraw: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(redraw);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  scheme.addEventListener("change", redraw);
  return () => {
    observer.disconnect();
    scheme.removeEventListener("change", redraw);
  };
}
