/** The map: draws the picture of the city, layer over layer, at most once per frame. */
import { EMPTY_PICTURE, type Picture, type Place } from "./api.js";
import { colors, GROWABLE_COLORS, NO_SERVICE_COLOR, onColorsChanged } from "./colors.js";
import {
  drawBuildings,
  drawLand,
  drawNetworks,
  drawZones,
  isHighway,
  type LineLayer,
  paintLand,
} from "./drawing.js";
import type { Layers } from "./panel.js";
import { drawProblems } from "./problems.js";
import { View } from "./view.js";

const EMPTY_CITY_CORNERS: readonly Place[] = [
  { x: -700, z: -700 },
  { x: 700, z: 700 },
];

export class CityMap {
  readonly view: View;
  readonly #canvas: HTMLCanvasElement;
  readonly #layers: Layers;
  readonly #context: CanvasRenderingContext2D;
  #picture: Picture = EMPTY_PICTURE;
  #land: HTMLCanvasElement | null = null;
  #isDue = false;

  constructor(canvas: HTMLCanvasElement, layers: Layers) {
    this.#canvas = canvas;
    this.#layers = layers;
    this.#context = canvas.getContext("2d") as CanvasRenderingContext2D;
    this.view = new View(canvas, () => this.redraw());
    this.view.onFit = () => this.fit();
    new ResizeObserver(() => this.redraw()).observe(canvas);
    onColorsChanged(() => {
      this.#land = null;
      this.redraw();
    });
  }

  show(picture: Picture): void {
    if (picture.terrain !== this.#picture.terrain) this.#land = null;
    this.#picture = picture;
    this.redraw();
  }

  /** Moves to where the city is: the highway alone reaches from edge to edge. */
  fit(): void {
    const { segments, growables, facilities } = this.#picture;
    const places: Place[] = [
      ...segments.filter((segment) => !isHighway(segment)).flatMap(({ start, end }) => [start, end]),
      ...[...growables, ...facilities].map(({ position }) => position),
    ];
    this.view.fit(places.length > 0 ? places : EMPTY_CITY_CORNERS);
  }

  redraw(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  #draw(): void {
    const view = this.view;
    const [canvas, context] = [this.#canvas, this.#context];
    const [layers, picture] = [this.#layers, this.#picture];
    canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
    canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
    const palette = colors();
    context.fillStyle = palette.ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    view.drawInMeters(context);
    const drawLines = (layer: LineLayer) => {
      if (layers.shows(layer)) drawNetworks(context, layer, picture.segments, palette, view.pixelsPerMeter);
    };
    if (picture.terrain && layers.shows("land")) {
      this.#land ??= paintLand(picture.terrain, palette);
      drawLand(context, picture.terrain, this.#land);
    }
    if (picture.zoneBlocks && layers.shows("zones")) drawZones(context, picture.zoneBlocks);
    drawLines("roads");
    if (layers.shows("buildings")) {
      const colorOf = ({ service }: { service: string }) => GROWABLE_COLORS[service] ?? NO_SERVICE_COLOR;
      drawBuildings(context, picture.growables, colorOf, palette.outline);
    }
    if (layers.shows("services")) {
      drawBuildings(context, picture.facilities, () => palette.service, palette.outline);
    }
    drawLines("water");
    drawLines("power");
    if (layers.shows("problems")) {
      drawProblems(context, picture.problems, (place) => view.drawAt(context, place), palette);
    }
  }
}
