/** The map: draws the picture of the city, layer over layer, at most once per frame. */
import { type BuildingRow, EMPTY_PICTURE, type Picture, type Place } from "./api.js";
import { colors, GROWABLE_COLORS, onColorsChanged, RUIN_COLOR } from "./colors.js";
import type { Selection } from "./details.js";
import {
  drawBuildings,
  drawCrowds,
  drawLand,
  drawLayer,
  drawMark,
  drawNetworks,
  drawZones,
  isHighway,
  type LineLayer,
  paintLand,
  thingAt,
} from "./drawing.js";
import type { Layers } from "./panel.js";
import { drawProblems } from "./problems.js";
import { View } from "./view.js";

const EMPTY_CITY_CORNERS: readonly Place[] = [
  { x: -700, z: -700 },
  { x: 700, z: 700 },
];

/** Single buildings are told apart from here on. */
const BUILDINGS_FROM_PIXELS_PER_METER = 0.12;
const PICK_PIXELS = 8;

export class CityMap {
  readonly view: View;
  readonly #canvas: HTMLCanvasElement;
  readonly #layers: Layers;
  readonly #context: CanvasRenderingContext2D;
  #picture: Picture = EMPTY_PICTURE;
  #land: HTMLCanvasElement | null = null;
  #selection: Selection | null = null;
  #isDue = false;

  constructor(canvas: HTMLCanvasElement, layers: Layers) {
    this.#canvas = canvas;
    this.#layers = layers;
    this.#context = canvas.getContext("2d") as CanvasRenderingContext2D;
    this.view = new View(canvas, () => this.redraw());
    this.view.onFit = () => this.fit();
    this.view.onPick = ({ x, z }) => {
      const { buildings, segments } = this.#picture;
      const reach = PICK_PIXELS / this.view.pixelsPerMeter;
      this.onSelect(thingAt({ x, z }, buildings, segments, reach) ?? { kind: "ground", x, z });
    };
    new ResizeObserver(() => this.redraw()).observe(canvas);
    onColorsChanged(() => {
      this.#land = null;
      this.redraw();
    });
  }

  /** Called with what was clicked on. */
  onSelect: (selection: Selection) => void = () => {};

  /** @param selection null for nothing */
  mark(selection: Selection | null): void {
    this.#selection = selection;
    this.redraw();
  }

  show(picture: Picture): void {
    if (picture.terrain !== this.#picture.terrain) this.#land = null;
    this.#picture = picture;
    this.redraw();
  }

  /** Moves to where the city is: the highway alone reaches from edge to edge. */
  fit(): void {
    const { segments, buildings } = this.#picture;
    const places: Place[] = [
      ...segments.filter((segment) => !isHighway(segment)).flatMap(({ start, end }) => [start, end]),
      ...buildings.map(({ position }) => position),
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
    const shown = picture.buildings.filter(({ service }) => {
      return layers.shows(service in GROWABLE_COLORS ? "buildings" : "services");
    });
    const colorOf = ({ service, abandoned }: BuildingRow) =>
      abandoned ? RUIN_COLOR : (GROWABLE_COLORS[service] ?? palette.service);
    if (view.pixelsPerMeter < BUILDINGS_FROM_PIXELS_PER_METER) drawCrowds(context, shown, colorOf);
    else drawBuildings(context, shown, colorOf, palette.outline);
    drawLines("water");
    drawLines("power");
    if (picture.layer) drawLayer(context, picture.layer, palette.ground);
    if (this.#selection) drawMark(context, this.#selection, picture, palette.mark, view.pixelsPerMeter);
    if (layers.shows("problems")) {
      drawProblems(context, picture.problems, (place) => view.drawAt(context, place), palette);
    }
  }
}
