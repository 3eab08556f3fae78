/**
 * The map. All layers are painted on a hidden canvas, which is larger than the view. The visible part of the canvas
 * is copied to the view. The canvas is repainted when the view leaves it, when zooming ends, or when the city changes.
 */
import {
  type BuildingRow,
  type CityData,
  EMPTY_CITY_DATA,
  type Place,
  type SegmentRow,
  type Selection,
} from "./api.js";
import { drawDetailedBuildings, drawFootprints, drawServiceSymbols } from "./buildings.js";
import { colors, GROWABLE_COLORS, onColorsChanged, RUIN_COLOR, serviceStyle } from "./colors.js";
import {
  drawBuildingDensity,
  drawDataOn,
  drawDataSquares,
  drawLand,
  drawNetworks,
  drawSelection,
  drawZones,
  entityAt,
  fillCanvas,
  isHighway,
  isStreet,
  type LineLayer,
  layerOf,
  renderLand,
} from "./drawing.js";
import { byId, type LayerCheckboxes } from "./panel.js";
import { drawProblems } from "./problems.js";
import { drawCars, drawStreetNames } from "./streets.js";
import { type Frame, View } from "./view.js";

/** The view of a city without streets: plain, highway and river. */
const EMPTY_CITY_CORNERS: readonly Place[] = [
  { x: -900, z: -500 },
  { x: 1300, z: 800 },
];

/** Zoom levels, in pixels per metre, from which single buildings, street names, cars and roofs are drawn. */
const BUILDINGS_FROM = 0.12;
const NAMES_FROM = 1.2;
const CARS_FROM = 0.8;
const SOLIDS_FROM = 2.4;
const PICK_PIXELS = 8;
/** Width and height of the painted canvas, relative to the view. */
const CANVAS_VIEWS = 1.5;
/** Time without zooming after which the map is repainted at the new zoom. */
const REST_MS = 150;
/** Upper bound for the distance from the centre of any building to its edge. */
const REACH_METERS = 80;
const NIGHT = "#0a1440";
const NIGHT_OPACITY = 0.5;

const STILL = matchMedia("(prefers-reduced-motion: reduce)");

/** Draws something over the map. The context is in metres; `pixelsPerMeter` converts line widths from pixels. */
export type DrawOverMap = (context: CanvasRenderingContext2D, pixelsPerMeter: number) => void;

export class CityMap {
  readonly view: View;
  readonly #canvas: HTMLCanvasElement;
  readonly #layers: LayerCheckboxes;
  readonly #context: CanvasRenderingContext2D;
  readonly #painted = document.createElement("canvas").getContext("2d") as CanvasRenderingContext2D;
  #frame: Frame | null = null;
  #picture: CityData = EMPTY_CITY_DATA;
  #roads = new Map<number, SegmentRow>();
  #land: HTMLCanvasElement | null = null;
  #selection: Selection | null = null;
  #isDue = false;
  #rest = 0;
  #darkness = 0;
  /** Simulation speed; 0 while paused. */
  #speed = 0;
  #carSeconds = 0;
  #lastMs = 0;

  constructor(canvas: HTMLCanvasElement, layers: LayerCheckboxes) {
    this.#canvas = canvas;
    this.#layers = layers;
    this.#context = canvas.getContext("2d") as CanvasRenderingContext2D;
    this.view = new View(canvas, () => this.#requestFrame());
    this.view.onFit = () => this.fit();
    this.view.onPick = (place) => {
      if (!this.onPlace(place)) this.pick(place);
    };
    new ResizeObserver(() => this.redraw()).observe(canvas);
    onColorsChanged(() => {
      this.#land = null;
      this.redraw();
    });
  }

  /** Called with the clicked entity. */
  onSelect: (selection: Selection) => void = () => {};
  /** Called with the clicked place. If it returns true, nothing is selected. */
  onPlace: (place: Place) => boolean = () => false;
  sketch: DrawOverMap = () => {};

  /** Selects the entity at a place. */
  pick({ x, z }: Place): void {
    this.onSelect(this.entityAt({ x, z }) ?? { kind: "ground", x, z });
  }

  /** What the user sees at a place. */
  entityAt(place: Place) {
    const layers = this.#layers;
    const buildings = this.#picture.buildings.filter(({ service }) => layers.shows(buildingLayer(service)));
    const segments = this.#picture.segments.filter((each) =>
      layers.shows(layerOf(each.prefab, each.service)),
    );
    return entityAt(place, buildings, segments, PICK_PIXELS / this.view.pixelsPerMeter);
  }

  /** Shows a layer that the user is about to draw on. */
  reveal(layer: LineLayer): void {
    this.#layers.reveal(layer);
  }

  /** Whether the user works on the map by keyboard. */
  get isFocusedByKeyboard(): boolean {
    return this.#canvas.matches(":focus-visible");
  }

  /** Outlines the selection; null removes the outline. */
  mark(selection: Selection | null): void {
    this.#selection = selection;
    this.#requestFrame();
  }

  show(picture: CityData): void {
    const { traffic, ...still } = picture;
    const isSame = Object.entries(still).every(
      ([name, value]) => this.#picture[name as keyof CityData] === value,
    );
    if (picture.terrain !== this.#picture.terrain) this.#land = null;
    this.#picture = picture;
    this.#roads = new Map(picture.segments.map((segment) => [segment.id, segment]));
    if (!isSame) this.redraw();
    else if (traffic.length > 0) this.#requestFrame();
  }

  /** @param speed speed of the simulation; 0 while paused */
  setTime(darkness: number, speed: number): void {
    const shown = this.#layers.shows("night") ? Math.round(darkness * 8) / 8 : 0;
    if (shown !== this.#darkness) {
      this.#darkness = shown;
      this.redraw();
    }
    this.#speed = speed;
    if (speed > 0) this.#requestFrame();
  }

  get showsCars(): boolean {
    return this.#layers.shows("cars") && this.view.pixelsPerMeter >= CARS_FROM;
  }

  /** Zooms to the whole town. Ignores the highway, because it spans the whole map. */
  fit(): void {
    const { segments, buildings } = this.#picture;
    const places: Place[] = [
      ...segments.filter((segment) => !isHighway(segment)).flatMap(({ start, end }) => [start, end]),
      ...buildings.map(({ position }) => position),
    ];
    const covered = this.#canvas.getBoundingClientRect().bottom - byId("tools").getBoundingClientRect().top;
    this.view.fit(places.length > 0 ? places : EMPTY_CITY_CORNERS, Math.max(covered, 0));
    // A copy of the painted map would lie between the pixels.
    this.redraw();
  }

  /** Draws the sketch again. */
  redrawSketch(): void {
    this.#requestFrame();
  }

  /** Repaints all layers. */
  redraw(): void {
    this.#frame = null;
    this.#requestFrame();
  }

  #requestFrame(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame((nowMs) => {
      this.#isDue = false;
      this.#draw(nowMs);
    });
  }

  #draw(nowMs: number): void {
    const [canvas, context, view] = [this.#canvas, this.#context, this.view];
    const width = Math.round(canvas.clientWidth * devicePixelRatio);
    const height = Math.round(canvas.clientHeight * devicePixelRatio);
    if (width === 0 || height === 0) return;
    if (canvas.width !== width || canvas.height !== height) {
      Object.assign(canvas, { width, height });
      this.#frame = null;
    }
    if (!this.#frame || !view.isWithin(this.#frame, this.#painted.canvas)) this.#paint(width, height);
    const frame = this.#frame as Frame;
    fillCanvas(context, colors().ground, 1);
    context.resetTransform();
    view.copy(context, this.#painted.canvas, frame);
    if (frame.pixelsPerMeter !== view.pixelsPerMeter) this.#repaintAtRest();
    view.drawInMeters(context);
    if (this.#selection)
      drawSelection(context, this.#selection, this.#picture, colors().mark, view.pixelsPerMeter);
    if (this.showsCars) this.#drawCars(nowMs);
    this.sketch(context, view.pixelsPerMeter);
  }

  #drawCars(nowMs: number): void {
    const isMoving = this.#speed > 0 && !STILL.matches;
    if (isMoving) this.#carSeconds += (Math.min(nowMs - this.#lastMs, 100) / 1000) * this.#speed;
    this.#lastMs = nowMs;
    const isSeen = this.#sight(this.#canvas, this.view);
    const roadOf = (id: number) => {
      const road = this.#roads.get(id);
      return road && isSeen(road.start, road.end) ? road : undefined;
    };
    drawCars(this.#context, this.#picture.traffic, roadOf, this.#carSeconds);
    if (isMoving && this.#picture.traffic.length > 0) this.#requestFrame();
  }

  #repaintAtRest(): void {
    clearTimeout(this.#rest);
    this.#rest = setTimeout(() => this.redraw(), REST_MS);
  }

  /** Returns a function that tests if a point or a line is in the area that a canvas shows. */
  #sight(canvas: HTMLCanvasElement, { center, pixelsPerMeter }: Frame): (a: Place, b?: Place) => boolean {
    const scale = 2 * pixelsPerMeter * devicePixelRatio;
    const [x, z] = [canvas.width / scale + REACH_METERS, canvas.height / scale + REACH_METERS];
    return (a, b = a) =>
      Math.min(a.x, b.x) < center.x + x &&
      Math.max(a.x, b.x) > center.x - x &&
      Math.min(a.z, b.z) < center.z + z &&
      Math.max(a.z, b.z) > center.z - z;
  }

  #paint(width: number, height: number): void {
    const [context, view, layers] = [this.#painted, this.view, this.#layers];
    const { pixelsPerMeter } = view;
    const canvas = context.canvas;
    // The canvas exceeds the view by an even number of pixels, so that copies are aligned with the pixels of the view.
    const grow = (pixels: number) => pixels + 2 * Math.round((pixels * (CANVAS_VIEWS - 1)) / 2);
    if (canvas.width !== grow(width) || canvas.height !== grow(height))
      Object.assign(canvas, { width: grow(width), height: grow(height) });
    this.#frame = { center: view.center, pixelsPerMeter };
    const isSeen = this.#sight(canvas, view);
    const palette = colors();
    const segments = this.#picture.segments.filter(({ start, end }) => isSeen(start, end));
    fillCanvas(context, palette.ground, 1);
    context.globalAlpha = 1;
    view.drawInMeters(context);
    const drawLines = (layer: LineLayer) => {
      if (layers.shows(layer)) drawNetworks(context, layer, segments, palette, pixelsPerMeter);
    };
    const { terrain, zoneBlocks, layer } = this.#picture;
    if (terrain && layers.shows("land")) {
      this.#land ??= renderLand(terrain, palette);
      drawLand(context, terrain, this.#land);
    }
    if (zoneBlocks && layers.shows("zones"))
      drawZones(
        context,
        zoneBlocks.filter(({ position }) => isSeen(position)),
        palette.freeCell,
      );
    drawLines("roads");
    const buildings = this.#picture.buildings.filter(({ service, position }) => {
      return isSeen(position) && layers.shows(buildingLayer(service));
    });
    const colorOf = ({ service, abandoned }: BuildingRow) =>
      abandoned ? RUIN_COLOR : (GROWABLE_COLORS[service] ?? serviceStyle(service).color);
    if (pixelsPerMeter < BUILDINGS_FROM) drawBuildingDensity(context, buildings, colorOf);
    else if (pixelsPerMeter < SOLIDS_FROM) drawFootprints(context, buildings, colorOf, palette.outline);
    else drawDetailedBuildings(context, buildings, colorOf, palette, this.#darkness);
    drawLines("water");
    drawLines("power");
    if (this.#darkness > 0) fillCanvas(context, NIGHT, this.#darkness * NIGHT_OPACITY);
    if (layer && pixelsPerMeter < BUILDINGS_FROM) drawDataSquares(context, layer, palette.ground);
    else if (layer) {
      const grown = buildings.filter(({ service, abandoned }) => service in GROWABLE_COLORS && !abandoned);
      drawDataOn(context, layer, grown, segments, palette.ground);
    }
    const moveTo = (place: Place) => view.drawAt(context, place);
    const isSolid = pixelsPerMeter >= SOLIDS_FROM;
    if (pixelsPerMeter >= NAMES_FROM && layers.shows("names"))
      drawStreetNames(context, segments.filter(isStreet), moveTo, palette, pixelsPerMeter);
    const services = buildings.filter(({ service }) => !(service in GROWABLE_COLORS));
    if (!layer) drawServiceSymbols(context, services, moveTo, pixelsPerMeter, isSolid);
    if (layers.shows("problems")) {
      const problems = this.#picture.problems.filter(({ position }) => isSeen(position));
      drawProblems(context, problems, moveTo, palette, pixelsPerMeter);
    }
  }
}

function buildingLayer(service: string) {
  return service in GROWABLE_COLORS ? "buildings" : "services";
}
