/** Widens a mix: adds a side that is made of its sounds' middles, which stay as they were. */
import { type Stereo, sampleRate } from "./stereo.js";

/** Delays in samples of Schroeder allpasses in series. They smear a sound by some 20 ms, which is heard as space. */
const delays = [113, 337, 509, 887] as const;
const feedback = 0.6;
/** Sides below this frequency would take the foundation from the bass. */
const lowestHertz = 200;
const lowShare = 1 - Math.exp((-2 * Math.PI * lowestHertz) / sampleRate);

/** Adds the side of `send` to `audio`. @param send sum of the sounds' middles, each times its width */
export function addWidth(send: Float32Array, { left, right }: Stereo): void {
  const rings = delays.map((delay) => ({ samples: new Float32Array(delay), at: 0 }));
  let low = 0;
  for (let i = 0; i < send.length; i++) {
    let side = send[i] as number;
    low += lowShare * (side - low);
    side -= low;
    for (const ring of rings) {
      const { samples, at } = ring;
      const delayed = samples[at] as number;
      const kept = side + feedback * delayed;
      samples[at] = kept;
      side = delayed - feedback * kept;
      ring.at = at + 1 === samples.length ? 0 : at + 1;
    }
    left[i] = (left[i] as number) + side;
    right[i] = (right[i] as number) - side;
  }
}
