export type NetworkClass = ReturnType<typeof networkClass>;

/** How maps draw a network, by the name and the service of its prefab. */
export function networkClass(prefab: string, service: string) {
  if (service === "Water") return prefab.startsWith("Heating") ? "heatPipe" : "waterPipe";
  if (service === "Electricity") return "powerLine";
  if (service === "PublicTransport") return "track";
  if (service !== "Road") return "path";
  if (prefab.startsWith("Highway")) return "highway";
  if (prefab.startsWith("Large")) return "largeRoad";
  return prefab.startsWith("Medium") ? "mediumRoad" : "smallRoad";
}
