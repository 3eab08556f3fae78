import type { City } from "../game.js";
import type { ReadRoute } from "../route.js";
import {
  GROWABLE_SERVICES,
  LEVELS,
  levelName,
  SERVICES,
  type Service,
  SLIDER_SUB_SERVICES,
  SUB_SERVICES,
  type SubService,
  TAXED_SUB_SERVICES,
} from "../terms.js";

/** GET /state/economy: the six sliders show level 1 of their sub-service; the table shows all. */
export const economy: ReadRoute = {
  path: "/state/economy",
  label: "Read economy state",
  read: ({ city }) => ({
    ok: true,
    aggregateTaxRates: SLIDER_SUB_SERVICES.map(({ service, subService }) => ({
      ...names(service, subService),
      level: levelName(0),
      levelValue: -1,
      source: "uiTaxSlider",
      rate: city.taxRate(subService, 1),
    })),
    taxRates: GROWABLE_SERVICES.flatMap((service) =>
      TAXED_SUB_SERVICES[service].flatMap((subService) => levelRows(city, service, subService)),
    ),
  }),
};

function levelRows(city: City, service: Service, subService: SubService) {
  return LEVELS.map((level) => ({
    ...names(service, subService),
    level: levelName(level),
    levelValue: level - 1,
    rate: city.taxRate(subService, level),
  }));
}

function names(service: Service, subService: SubService) {
  return {
    service,
    serviceValue: SERVICES.indexOf(service),
    subService,
    subServiceValue: SUB_SERVICES.indexOf(subService),
  };
}
