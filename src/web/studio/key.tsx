/** The server's key: entered once, then replaced by a cookie. */
import { useState } from "preact/hooks";
import { CarillonError } from "../../client/index.js";
import { forgetKey, hasSession, unlock } from "./api.js";
import { Button } from "./button.js";
import { t } from "./language.js";
import { notifyTabs } from "./live.js";
import { errorInWords } from "./notes.js";

/** The form that a locked page shows. */
export function KeyEntry({ onUnlock }: { onUnlock: () => Promise<void> }) {
  const [refusal, setRefusal] = useState("");
  const tryKey = async (key: string) => {
    try {
      await unlock(key);
      notifyTabs();
      await onUnlock();
    } catch (error) {
      const isWrong = error instanceof CarillonError && error.status === 401;
      setRefusal(isWrong ? t("The server does not accept this key.") : errorInWords(error));
    }
  };
  return (
    <form
      class="key"
      onSubmit={(event) => {
        event.preventDefault();
        void tryKey(String(new FormData(event.currentTarget).get("key") ?? "").trim());
      }}
    >
      <label for="key">{refusal || t("This server asks for a key (SVC_API_KEY).")}</label>
      <div class="row">
        <input
          id="key"
          name="key"
          type="password"
          required
          autocomplete="current-password"
          ref={(input) => input?.focus()}
        />
        <button type="submit" class="main">
          {t("Unlock")}
        </button>
      </div>
    </form>
  );
}

/** Button that forgets the key. This locks the page and its songs in all tabs. */
export function ForgetKey({ onForget }: { onForget: () => Promise<void> }) {
  if (!hasSession()) return null;
  return (
    <Button
      class="plain"
      onClick={async () => {
        await forgetKey().catch(() => {});
        notifyTabs();
        await onForget();
      }}
    >
      {t("Forget key")}
    </Button>
  );
}
