/** Settings and parameters of other servers that are accepted and ignored. Setting one causes a warning. */
const REASONS = {
  SVC_API_WORKERS: "one process serves all requests, and SVC_QUEUE_WORKERS sets how many tasks run at once",
  SVC_LM_BACKEND: "there is only the built-in backend",
  lm_backend: "there is only the built-in backend",
  use_fp8: "frozen weights keep the precision of the model",
  prompt_influence: "guidance_scale sets how closely a song follows its prompt",
  loop: "songs have an end",
  lokr_use_tucker: "it applies only to convolutions, which adapters do not have",
} as const;

export type IgnoredName = keyof typeof REASONS;

export const IGNORED_SETTINGS = ["SVC_API_WORKERS", "SVC_LM_BACKEND"] as const satisfies IgnoredName[];

export function reasonToIgnore(name: IgnoredName): string {
  return REASONS[name];
}

/** Meaning of an ignored setting or parameter, for documents. */
export function meaningOfIgnored(name: IgnoredName): string {
  return `Accepted and ignored: ${REASONS[name]}.`;
}

export function ignoredWarning(name: IgnoredName): string {
  return `${name} was ignored: ${REASONS[name]}`;
}
