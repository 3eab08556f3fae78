/** The layers of the map, and the boxes that show and hide them. */
import { colors } from "./colors.js";

const LAYERS = {
  land: { label: "Terrain and water", shown: true, color: () => `rgb(${colors().water.join(" ")})` },
  zones: { label: "Zones", shown: true, color: () => "#8fd14f" },
  roads: { label: "Roads and paths", shown: true, color: () => colors().mediumRoad },
  buildings: { label: "Buildings", shown: true, color: () => "#2e7d32" },
  services: { label: "Services", shown: true, color: () => colors().service },
  water: { label: "Water pipes", shown: false, color: () => colors().waterPipe },
  power: { label: "Power lines", shown: false, color: () => colors().powerLine },
  problems: { label: "Problems", shown: true, color: () => "#b3261e" },
};

export type LayerName = keyof typeof LAYERS;

export class Layers {
  private readonly boxes = new Map<LayerName, HTMLInputElement>();

  /** @param onChange called when a layer appears or disappears */
  constructor(list: HTMLElement, onChange: () => void) {
    for (const [name, { label, shown, color }] of Object.entries(LAYERS)) {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = shown;
      box.addEventListener("change", onChange);
      this.boxes.set(name as LayerName, box);
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = color();
      const row = document.createElement("label");
      row.append(box, swatch, label);
      const item = document.createElement("li");
      item.append(row);
      list.append(item);
    }
  }

  shows(name: LayerName): boolean {
    return this.boxes.get(name)?.checked === true;
  }

  /** A layer that the bridge has nothing for is not there. */
  offer(name: LayerName, isOffered: boolean): void {
    const item = this.boxes.get(name)?.closest("li");
    if (item) item.hidden = !isOffered;
  }
}
