/**
 * Measures the embedded city at 5,000 segments and 10,000 buildings:
 *   node --import tsx test/city/simulation/frame-time.ts
 * CPU time counts besides the clock, since the machine may be shared.
 */
import { takeSnapshot } from "../../../src/city/simulation/saves/snapshot.js";
import { tick } from "../../../src/city/simulation/tick.js";
import { largeCity } from "./towns.js";

const FRAMES = 4096;

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function summary(values: readonly number[]): Record<string, number> {
  const sorted = [...values].sort((a, b) => a - b);
  const quantile = (share: number) =>
    Number((sorted[Math.floor(share * (sorted.length - 1))] as number).toFixed(3));
  const mean = Number((values.reduce((sum, value) => sum + value, 0) / values.length).toFixed(3));
  return { mean, median: quantile(0.5), p99: quantile(0.99), longest: quantile(1) };
}

const city = largeCity();
const cpu: number[] = [];
const wall: number[] = [];
for (let i = 0; i < FRAMES; i++) {
  const [startCpu, startWall] = [cpuMs(), performance.now()];
  tick(city.world);
  cpu.push(cpuMs() - startCpu);
  wall.push(performance.now() - startWall);
}
const captures = Array.from({ length: 5 }, () => {
  const start = cpuMs();
  takeSnapshot(city.world);
  return cpuMs() - start;
});

console.log(
  `${city.segments().length} segments, ${city.buildings().length} buildings, ${city.citizenCount} citizens`,
);
console.table({
  "frame, CPU ms": summary(cpu),
  "frame, ms": summary(wall),
  "capture for a save, CPU ms": summary(captures),
});
