/** The course of the city: one row of figures a week. */
import type { StatisticsSample } from "../../game.js";

/** Ten years. */
const KEPT_SAMPLES = 522;

/** What is counted from event to event; `Statistics.close` begins anew. */
export interface WeekEvents {
  births: number;
  deaths: number;
  arrivals: number;
  departures: number;
}

export class Statistics {
  week: WeekEvents = { births: 0, deaths: 0, arrivals: 0, departures: 0 };
  /** Oldest first. */
  readonly samples: StatisticsSample[] = [];

  close(sample: StatisticsSample): void {
    this.samples.push(sample);
    if (this.samples.length > KEPT_SAMPLES) this.samples.shift();
    this.week = { births: 0, deaths: 0, arrivals: 0, departures: 0 };
  }
}
