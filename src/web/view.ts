/** The visible part of the map: pan and zoom by mouse, touch, wheel and keyboard. North is up. */
import type { Place } from "./api.js";

const MIN_PIXELS_PER_METER = 0.03;
const MAX_PIXELS_PER_METER = 12;
const ZOOM_STEP = 1.3;
const PAN_STEP_PIXELS = 60;
/** Minimum zoom after moving to a place. */
const VISIT_PIXELS_PER_METER = 2;
/** The canvas is repainted once it is enlarged or reduced by this factor. */
const MAX_ENLARGEMENT = 3;
const FIT_MARGIN_METERS = 60;
/** Pointer movement up to this distance is a click. */
const CLICK_PIXELS = 4;

/** Section of the map that a canvas shows. */
export interface Frame {
  readonly center: Place;
  readonly pixelsPerMeter: number;
}

export class View {
  readonly #canvas: HTMLCanvasElement;
  readonly #onChange: () => void;
  #center: Place = { x: 0, z: 0 };
  pixelsPerMeter = 0.4;

  /** @param onChange called after every move */
  constructor(canvas: HTMLCanvasElement, onChange: () => void) {
    this.#canvas = canvas;
    this.#onChange = onChange;
    this.#listenToPointers();
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.#zoom(ZOOM_STEP ** (-event.deltaY / 100), event.offsetX, event.offsetY);
    });
    canvas.addEventListener("keydown", (event) => {
      const act = this.#keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    });
  }

  /** Called when the user presses the key 0, which shows the whole town. */
  onFit: () => void = () => {};
  /** Called with the clicked place, or with the middle of the map on Enter. */
  onPick: (place: Place) => void = () => {};
  /** Called on Enter. If it returns true, nothing is picked. */
  onEnter: () => boolean = () => false;
  /** Whether dragging with the main button or one finger draws, instead of moving the map. */
  isDrawing: () => boolean = () => false;
  /** Called while the user draws a line, and at its end. `to` is null if the drawing is given up. */
  onDraw: (from: Place, to: Place | null, isDone: boolean) => void = () => {};
  /** Called with the place under the pointer, while no button is pressed. */
  onHover: (place: Place) => void = () => {};

  get center(): Place {
    return this.#center;
  }

  readonly #keys: Readonly<Record<string, () => void>> = {
    ArrowLeft: () => this.#pan(PAN_STEP_PIXELS, 0),
    ArrowRight: () => this.#pan(-PAN_STEP_PIXELS, 0),
    ArrowUp: () => this.#pan(0, PAN_STEP_PIXELS),
    ArrowDown: () => this.#pan(0, -PAN_STEP_PIXELS),
    "+": () => this.zoomIn(),
    "=": () => this.zoomIn(),
    "-": () => this.zoomOut(),
    "0": () => this.onFit(),
    Enter: () => {
      if (!this.onEnter()) this.onPick(this.#center);
    },
  };

  /** Moves to a place, and zooms in until single buildings are visible. */
  goTo(place: Place): void {
    this.#center = place;
    this.pixelsPerMeter = Math.max(this.pixelsPerMeter, VISIT_PIXELS_PER_METER);
    this.#onChange();
  }

  zoomIn(): void {
    this.#zoom(ZOOM_STEP);
  }

  zoomOut(): void {
    this.#zoom(1 / ZOOM_STEP);
  }

  /**
   * Zooms to fit the given places.
   * @param coveredPixels height at the lower edge of the map that tools cover
   */
  fit(places: readonly Place[], coveredPixels: number): void {
    const xs = places.map(({ x }) => x);
    const zs = places.map(({ z }) => z);
    const [west, east] = [least(xs), -least(xs.map((x) => -x))];
    const [south, north] = [least(zs), -least(zs.map((z) => -z))];
    this.pixelsPerMeter = clampScale(
      Math.min(
        this.#canvas.clientWidth / (east - west + 2 * FIT_MARGIN_METERS),
        (this.#canvas.clientHeight - coveredPixels) / (north - south + 2 * FIT_MARGIN_METERS),
      ),
    );
    const lowered = Math.round(coveredPixels / 2) / this.pixelsPerMeter;
    this.#center = { x: (west + east) / 2, z: (south + north) / 2 - lowered };
    this.#onChange();
  }

  /** Sets the canvas context to map coordinates: metres, x to the east, y to the north. */
  drawInMeters(context: CanvasRenderingContext2D): void {
    const scale = this.pixelsPerMeter * devicePixelRatio;
    this.#transform(context, { x: 0, z: 0 }, scale, -scale);
  }

  /** Sets the canvas context to pixels, with the origin at a place and y downwards. */
  drawAt(context: CanvasRenderingContext2D, place: Place): void {
    this.#transform(context, place, devicePixelRatio, devicePixelRatio);
  }

  /** Copies a painted canvas to its position in the view. */
  copy(context: CanvasRenderingContext2D, picture: HTMLCanvasElement, frame: Frame): void {
    const { left, top, enlargement } = this.#placeOf(frame, picture);
    if (enlargement === 1) context.drawImage(picture, Math.round(left), Math.round(top));
    else context.drawImage(picture, left, top, picture.width * enlargement, picture.height * enlargement);
  }

  /** Whether a painted canvas fills the view and is scaled by less than MAX_ENLARGEMENT. */
  isWithin(frame: Frame, picture: HTMLCanvasElement): boolean {
    const { left, top, enlargement } = this.#placeOf(frame, picture);
    const { width, height } = this.#canvas;
    return (
      left < 1 &&
      top < 1 &&
      left + picture.width * enlargement > width - 1 &&
      top + picture.height * enlargement > height - 1 &&
      enlargement > 1 / MAX_ENLARGEMENT &&
      enlargement < MAX_ENLARGEMENT
    );
  }

  #placeOf({ center, pixelsPerMeter }: Frame, { width, height }: HTMLCanvasElement) {
    const scale = this.pixelsPerMeter * devicePixelRatio;
    const enlargement = this.pixelsPerMeter / pixelsPerMeter;
    const left = this.#canvas.width / 2 + (center.x - this.#center.x) * scale - (width * enlargement) / 2;
    const top = this.#canvas.height / 2 - (center.z - this.#center.z) * scale - (height * enlargement) / 2;
    return { left, top, enlargement };
  }

  #transform(context: CanvasRenderingContext2D, origin: Place, unitX: number, unitY: number): void {
    const scale = this.pixelsPerMeter * devicePixelRatio;
    const { width, height } = context.canvas;
    const x = width / 2 + (origin.x - this.#center.x) * scale;
    const y = height / 2 - (origin.z - this.#center.z) * scale;
    context.setTransform(unitX, 0, 0, unitY, x, y);
  }

  /** Position of a place on the canvas, in CSS pixels. */
  pixelOf({ x, z }: Place): { x: number; y: number } {
    return {
      x: this.#canvas.clientWidth / 2 + (x - this.#center.x) * this.pixelsPerMeter,
      y: this.#canvas.clientHeight / 2 - (z - this.#center.z) * this.pixelsPerMeter,
    };
  }

  /** Map position of a canvas point. */
  #placeAt(x: number, y: number): Place {
    return {
      x: this.#center.x + (x - this.#canvas.clientWidth / 2) / this.pixelsPerMeter,
      z: this.#center.z - (y - this.#canvas.clientHeight / 2) / this.pixelsPerMeter,
    };
  }

  #pan(rightPixels: number, downPixels: number): void {
    this.#center = {
      x: this.#center.x - rightPixels / this.pixelsPerMeter,
      z: this.#center.z + downPixels / this.pixelsPerMeter,
    };
    this.#onChange();
  }

  /** Zooms around a canvas point. */
  #zoom(factor: number, x = this.#canvas.clientWidth / 2, y = this.#canvas.clientHeight / 2): void {
    const right = x - this.#canvas.clientWidth / 2;
    const down = y - this.#canvas.clientHeight / 2;
    const before = this.pixelsPerMeter;
    this.pixelsPerMeter = clampScale(before * factor);
    const moved = 1 / before - 1 / this.pixelsPerMeter;
    this.#center = { x: this.#center.x + right * moved, z: this.#center.z - down * moved };
    this.#onChange();
  }

  /** One pointer pans or draws, two pan and zoom. */
  #listenToPointers(): void {
    const canvas = this.#canvas;
    const pointers = new Map<number, PointerEvent>();
    let pressed: PointerEvent | null = null;
    let drawnFrom: Place | null = null;
    const placeOf = ({ offsetX, offsetY }: PointerEvent) => this.#placeAt(offsetX, offsetY);
    const isFar = (event: PointerEvent) =>
      pressed !== null &&
      Math.hypot(event.offsetX - pressed.offsetX, event.offsetY - pressed.offsetY) > CLICK_PIXELS;
    const giveUp = () => {
      if (drawnFrom) this.onDraw(drawnFrom, null, true);
      drawnFrom = null;
    };
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, event);
      if (pointers.size > 1) giveUp();
      pressed = pointers.size === 1 && event.button === 0 ? event : null;
      drawnFrom = pressed && this.isDrawing() ? placeOf(event) : null;
      canvas.classList.toggle("dragged", !drawnFrom);
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) {
        this.onHover(placeOf(event));
        return;
      }
      const other = [...pointers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
      pointers.set(event.pointerId, event);
      if (drawnFrom) {
        if (isFar(event)) this.onDraw(drawnFrom, placeOf(event), false);
        return;
      }
      const share = pointers.size;
      this.#pan((event.offsetX - before.offsetX) / share, (event.offsetY - before.offsetY) / share);
      if (other) this.#zoom(apart(event, other) / apart(before, other), other.offsetX, other.offsetY);
    });
    const release = (event: PointerEvent) => {
      pointers.delete(event.pointerId);
      canvas.classList.toggle("dragged", pointers.size > 0);
    };
    canvas.addEventListener("pointerup", (event) => {
      if (pressed && !isFar(event)) this.onPick(placeOf(event));
      else if (drawnFrom) this.onDraw(drawnFrom, placeOf(event), true);
      pressed = null;
      drawnFrom = null;
      release(event);
    });
    canvas.addEventListener("pointercancel", (event) => {
      giveUp();
      release(event);
    });
  }
}

function apart(a: PointerEvent, b: PointerEvent): number {
  return Math.max(1, Math.hypot(a.offsetX - b.offsetX, a.offsetY - b.offsetY));
}

function clampScale(pixelsPerMeter: number): number {
  return Math.min(Math.max(pixelsPerMeter, MIN_PIXELS_PER_METER), MAX_PIXELS_PER_METER);
}

/** Minimum of a list that may have more values than Math.min takes as arguments. */
function least(values: readonly number[]): number {
  return values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
}
