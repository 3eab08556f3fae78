/** Swagger UI with a search over paths, summaries and parameters, in the browser's colour scheme. */
const dark = matchMedia("(prefers-color-scheme: dark)");
const applyScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
applyScheme();
dark.addEventListener("change", applyScheme);

/** Finds operations that contain all words. Swagger UI's own search finds only tags. */
function findOperations(tagged, phrase) {
  const words = phrase.toLowerCase().split(/\s+/);
  const matches = (operation) => {
    const text = JSON.stringify(operation).toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return tagged
    .map((tag) => tag.update("operations", (operations) => operations.filter(matches)))
    .filter((tag) => tag.get("operations").size > 0);
}

globalThis.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#docs",
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: true,
  showExtensions: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  plugins: [{ fn: { opsFilter: findOperations } }],
});
