/** Which language a text is written in, by its n-grams. */
import { languages } from "./think-fields.js";

/** Section tags say nothing of the language that is sung. */
const tags = /\[[^[\]\n]*\]/g;

/** A code of `languages`, or null where the text is too short or too mixed to tell. */
export async function writtenLanguage(text: string): Promise<string | null> {
  // The detector's tables take a third of a second to load: only those who need them wait.
  const { eld } = await import("eld/small");
  const found = eld.detect(text.replace(tags, " "));
  return found.isReliable() && languages.includes(found.language) ? found.language : null;
}
