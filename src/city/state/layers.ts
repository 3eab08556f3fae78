/** What the city is like from place to place. */
import type { ReadRoute } from "../route.js";
import { LAYERS } from "../terms.js";
import { FieldError } from "../wire/answers.js";
import { placesOf } from "./land.js";
import { NO_LIMIT, paginate } from "./listing.js";

/** GET /state/layer?layer=: one value from 0 to 100 for each square in which something has grown, or runs. */
export const layer: ReadRoute = {
  path: "/state/layer",
  label: "Read map layer",
  read: ({ city, query }) => {
    const wanted = query.text("layer") || "landValue";
    const name = LAYERS.find((each) => each === wanted);
    if (!name) {
      throw new FieldError(`Unknown layer "${wanted.slice(0, 40)}"; it must be one of ${LAYERS.join(", ")}`);
    }
    const { cellMeters, isGood, values } = city.layer(name);
    const { page, rows } = paginate(values, query, NO_LIMIT);
    const cells = rows.map(({ x, z, value }) => ({ x, z, value: Math.round(value) }));
    return { ok: true, layer: name, layers: LAYERS, cellMeters, isGood, ...page, cells };
  },
};

/** GET /state/coverage: how each service reaches one place (`x`, `z`) or some (`points=x1,z1;x2,z2`). */
export const coverage: ReadRoute = {
  path: "/state/coverage",
  label: "Read service coverage",
  read: ({ city, query }) => {
    const places = placesOf(query);
    const samples = places.map(({ x, z }) => {
      const services = city.coverage({ x, z });
      return { x, z, services: services.map((each) => ({ ...each })) };
    });
    return { ok: true, total: places.length, samples };
  },
};
