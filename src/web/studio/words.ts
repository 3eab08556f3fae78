/** Formats times, durations and sizes for display. */
import { language, t } from "./language.js";

export function formatTime(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

/** Formats the estimated remaining time of a task. */
export function remainingTime(seconds: number): string {
  if (seconds < 5) return t("a few seconds left");
  if (seconds < 90) return t("about {count} s left", { count: Math.round(seconds / 5) * 5 });
  return t("about {count} min left", { count: Math.round(seconds / 60) });
}

/** Formatters by language. It takes as long to make one as a song card. */
const timeFormats: Record<string, Intl.RelativeTimeFormat> = {};

/** @param nowMs the time now, in milliseconds */
export function timeAgo(unixSeconds: number, nowMs: number): string {
  const seconds = nowMs / 1000 - unixSeconds;
  const code = language();
  timeFormats[code] ??= new Intl.RelativeTimeFormat(code, { numeric: "auto" });
  const format = timeFormats[code];
  if (seconds < 60) return t("just now");
  if (seconds < 3600) return format.format(-Math.round(seconds / 60), "minute");
  if (seconds < 86_400) return format.format(-Math.round(seconds / 3600), "hour");
  return format.format(-Math.round(seconds / 86_400), "day");
}

export function byteSize(bytes: number): string {
  const [value, digits, unit] = bytes < 1e9 ? [bytes / 1e6, 1, "MB"] : [bytes / 1e9, 2, "GB"];
  const number = value.toLocaleString(language(), {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${number} ${unit}`;
}

export function roundToTenths(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}

/** Part of a recording, in seconds; an end of 0 means the end of the recording. */
export interface TimeRange {
  start: number;
  end: number;
}
