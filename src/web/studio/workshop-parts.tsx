/** The parts of the workshop, in a script of their own: few visits need them. */
import { Adapters } from "./adapters.js";
import { Models } from "./models.js";
import type { Attempt } from "./part.js";
import { Training } from "./training.js";

export function WorkshopParts({ attempt }: { attempt: Attempt }) {
  return (
    <>
      <Models attempt={attempt} />
      <Adapters attempt={attempt} />
      <Training attempt={attempt} />
    </>
  );
}
