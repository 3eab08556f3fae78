/**
 * Tools that build roads, zones and services, and bulldoze. The user draws or clicks on the map. A dry run then shows
 * cost and warnings beside the place, and the user confirms.
 */

import { cornersOf } from "../city/geometry.js";
import {
  type CommandReply,
  errorInWords,
  type Place,
  readEntity,
  type Selection,
  sendCommand,
} from "./api.js";
import { type Choice, Choices, TOUCH } from "./choices.js";
import type { CityMap } from "./map.js";
import { type Command, Operations, UNDO_MS } from "./operations.js";
import { button, byId, element } from "./panel.js";
import { formatWholeNumber } from "./words.js";

type ToolName = "road" | "zone" | "service" | "bulldoze";

/** Command to send after confirmation, its words, and the points of its outline on the map. */
interface Plan {
  readonly name: string;
  readonly body: Command["body"];
  readonly corners: readonly Place[];
  /** Ground of a building. */
  readonly outline?: readonly Place[];
  readonly label: string;
  readonly confirm: string;
  readonly lines: readonly string[];
}

const tap = () => (TOUCH.matches ? "Tap" : "Click");

const TOOLS: Readonly<Record<ToolName, { label: string; hint: () => string }>> = {
  road: { label: "Road", hint: () => `Draw a line, or ${tap().toLowerCase()} its start and its end.` },
  zone: { label: "Zone", hint: () => "Grey squares can be zoned. Draw a rectangle over them." },
  service: {
    label: "Service",
    hint: () => `${tap()} near a road. The building takes the nearest free place.`,
  },
  bulldoze: { label: "Bulldoze", hint: () => `${tap()} a building or a road to remove it.` },
};
const NAMES = Object.keys(TOOLS) as ToolName[];
const SNAP_METERS = 16;
const SKETCH_COLOR = "#c2185b";
const SKETCH_FILL = "#c2185b30";
const SKETCH_PIXELS = 3;
const DOT_PIXELS = 6;
const CROSS_PIXELS = 14;
/** Distance of the plan's buttons from the pointer, and from the edge of the map. */
const PLAN_GAP_PIXELS = { pointer: 14, edge: 8 };

export class BuildTools {
  readonly #map: CityMap;
  readonly #onTool: () => void;
  readonly #buttons: Readonly<Record<ToolName, HTMLButtonElement>>;
  readonly #choices = new Choices(() => this.#restart());
  readonly operations = new Operations(
    (text) => this.report(text),
    (prefab) => this.labelOf(prefab),
  );
  /** Whether the city is embedded. A running game has fewer commands. */
  #isEmbedded = true;
  #tool: ToolName | null = null;
  #corners: Place[] = [];
  #hovered: Place | null = null;
  #plan: Plan | null = null;
  /** Whether the city did not answer the last request. */
  #isUnanswered = false;

  /** @param onTool called when another tool, or none, is chosen */
  constructor(map: CityMap, onTool: () => void) {
    this.#map = map;
    this.#onTool = onTool;
    const entries = NAMES.map((name) => {
      const choose = () => this.#choose(this.#tool === name ? null : name);
      return [name, button(TOOLS[name].label, choose)] as const;
    });
    this.#buttons = Object.fromEntries(entries) as Record<ToolName, HTMLButtonElement>;
    byId("tools").prepend(...Object.values(this.#buttons));
    map.sketch = (context, pixelsPerMeter) => this.#sketch(context, pixelsPerMeter);
    map.onPlace = (place) => this.#place(place);
    map.view.onHover = (place) => this.#hover(place);
    map.view.isDrawing = () => this.#tool === "road" || this.#tool === "zone";
    map.view.onDraw = (from, to, isDone) => this.#draw(from, to, isDone);
    map.view.onEnter = () => this.#confirmed();
    document.addEventListener("keydown", ({ key, target }) => {
      const isInDialog = target instanceof Element && target.closest("dialog") !== null;
      if (key !== "Escape" || !this.#tool || isInDialog) return;
      if (this.#plan || this.#corners.length > 0) this.#restart();
      else this.#choose(null);
    });
  }

  get isChosen(): boolean {
    return this.#tool !== null;
  }

  get isZoning(): boolean {
    return this.#tool === "zone";
  }

  /** Display name of a building or network. */
  labelOf(prefab: string): string {
    return this.#choices.labelOf(prefab);
  }

  /** Whether labels and choices are known. */
  get areLoaded(): boolean {
    return this.#choices.areLoaded;
  }

  set isEmbedded(isEmbedded: boolean) {
    this.#isEmbedded = isEmbedded;
    this.operations.isEmbedded = isEmbedded;
  }

  /** Reads what the bridge can build. */
  load(): Promise<void> {
    return this.#choices.load();
  }

  /** Bulldozes a building or segment, and says how to undo it. */
  async bulldoze(label: string, entityType: string, id: number): Promise<void> {
    await this.operations.run(label, [{ name: "bulldoze", body: { entityType, id } }]);
    this.report(`Removed: ${label}. ${this.operations.promiseFor("bulldoze")}`);
  }

  /** The city goes on after a restart, which ends the undo of what was built before. */
  forgetUndo(): void {
    if (this.operations.forget())
      this.report(
        "The city was started again from its last save. What was built since is gone, and what was built before cannot be undone.",
      );
  }

  /** The city answers again: tries what was drawn meanwhile. */
  resume(): void {
    if (!this.#isUnanswered) return;
    this.#isUnanswered = false;
    if (this.#corners.length > 0) void this.#attempt(() => this.#try());
    else this.#restart();
  }

  /** Closes the tools: another city is loaded. */
  reset(): void {
    this.operations.forget();
    this.#choose(null);
  }

  /** Sends the plan that is shown. Returns false if there is none. */
  #confirmed(): boolean {
    const plan = this.#plan;
    if (plan) void this.#attempt(() => this.#build(plan));
    return plan !== null;
  }

  /** Handles a click on the map. Returns false if no tool is chosen. */
  #place(place: Place): boolean {
    if (!this.#tool) {
      this.#say("");
      return false;
    }
    this.#choices.fold();
    const isOpen = this.#map.view.isDrawing() && this.#corners.length === 1 && !this.#plan;
    this.#corners = isOpen ? [...this.#corners, place] : [place];
    this.#showPlan(null);
    const isComplete = isOpen || !this.#map.view.isDrawing();
    if (isComplete) void this.#attempt(() => this.#try());
    else this.#say(`${tap()} the ${this.#tool === "zone" ? "opposite corner" : "end"}.`);
    return true;
  }

  #draw(from: Place, to: Place | null, isDone: boolean): void {
    this.#choices.fold();
    this.#showPlan(null);
    this.#corners = to ? [from, to] : [];
    this.#map.redrawSketch();
    if (to && isDone) void this.#attempt(() => this.#try());
  }

  #hover(place: Place): void {
    this.#hovered = place;
    if (this.#tool && this.#corners.length === 1) this.#map.redrawSketch();
  }

  #choose(tool: ToolName | null): void {
    this.#tool = tool;
    for (const name of NAMES) this.#buttons[name].setAttribute("aria-pressed", String(name === tool));
    document.body.classList.toggle("building", tool !== null);
    this.#choices.show(tool === "bulldoze" ? null : tool);
    this.#restart();
    this.#onTool();
  }

  #restart(): void {
    this.#corners = [];
    const { layer } = (this.#tool === "road" && this.#choices.of("road")) || {};
    if (layer) this.#map.reveal(layer);
    this.#showPlan(null);
    this.#say(this.#tool ? TOOLS[this.#tool].hint() : "");
  }

  /** Sends the command as a dry run, shows its cost and warnings, and asks for confirmation. */
  async #try(): Promise<void> {
    const [tool, corners] = [this.#tool, this.#corners];
    this.#say("One moment...");
    const plan = await this.#planOf(tool, corners);
    if (tool !== this.#tool || corners !== this.#corners) return;
    this.#corners = [...plan.corners];
    this.#showPlan(plan);
    this.#say(`Press ${plan.confirm}, or choose another place.`);
  }

  async #planOf(tool: ToolName | null, [start, end = start]: readonly Place[]): Promise<Plan> {
    if (!tool || !start || !end) throw new Error("No tool is chosen.");
    if (tool === "bulldoze") return this.#bulldozePlan(start);
    const choice = this.#choices.of(tool);
    if (!choice) throw new Error("The city has not said yet what it can build.");
    if (tool === "road") return this.#roadPlan(choice, start, end);
    return tool === "zone" ? this.#zonePlan(choice, start, end) : this.#servicePlan(choice, start);
  }

  async #roadPlan({ name: roadPrefab, label }: Choice, start: Place, end: Place): Promise<Plan> {
    const laying = this.#isEmbedded ? { snapDistance: SNAP_METERS, split: true } : {};
    const body = { roadPrefab, start, end, ...laying };
    const reply = await sendCommand("build-network", { ...body, dryRun: true });
    const meters = formatWholeNumber(Math.hypot(end.x - start.x, end.z - start.z));
    const lines = [`${meters} m of ${label}${priceOf(reply.cost)}.`, ...warningsOf(reply)];
    return { name: "build-network", body, corners: [start, end], label, confirm: "Build", lines };
  }

  async #zonePlan({ name: zone, label }: Choice, start: Place, end: Place): Promise<Plan> {
    const center = { x: (start.x + end.x) / 2, z: (start.z + end.z) / 2 };
    const radius = Math.hypot(end.x - start.x, end.z - start.z) / 2;
    const name = this.#isEmbedded ? "zone-rectangle" : "set-zone";
    const body = this.#isEmbedded ? { zone, from: start, to: end } : { zone, center, radius };
    const { changedCells, matchingBlocks = 0 } = await sendCommand(name, { ...body, dryRun: true });
    const count = changedCells ?? matchingBlocks;
    if (count === 0) throw new Error("Nothing here can be zoned so: only grey squares beside roads can.");
    const what = changedCells === undefined ? "blocks" : "squares";
    const lines = [`${formatWholeNumber(count)} ${what} become: ${label}. Zoning is free.`];
    return { name, body, corners: [start, end], label, confirm: "Zone", lines };
  }

  async #servicePlan({ name: buildingPrefab, label, price, prefab }: Choice, place: Place): Promise<Plan> {
    const site = { buildingPrefab, position: place, angleDegrees: 0 };
    const { suggestions = [] } = this.#isEmbedded
      ? await sendCommand("place-building", { ...site, suggest: true, dryRun: true })
      : {};
    const [best] = suggestions;
    if (this.#isEmbedded && !best) throw new Error(`No place beside a road near here is free for: ${label}.`);
    const body = best ? { ...site, position: best.position, angleDegrees: best.angleDegrees } : site;
    const reply = await sendCommand("place-building", { ...body, dryRun: true });
    const lines = [`${label}${price === "" ? "" : `: ${price}`}.`, ...warningsOf(reply)];
    const outline = prefab ? cornersOf({ ...body, prefab }) : [];
    return {
      name: "place-building",
      body,
      corners: [body.position],
      outline,
      label,
      confirm: "Build",
      lines,
    };
  }

  async #bulldozePlan(place: Place): Promise<Plan> {
    const found = this.#map.entityAt(place);
    if (!found) throw new Error("Neither a building nor a road is here.");
    const label = await nameOf(found);
    const body = { entityType: found.kind === "building" ? "building" : "netSegment", id: found.id };
    const warnings = warningsOf(await sendCommand("bulldoze", { ...body, dryRun: true }));
    const lines = [`Bulldoze ${label}? ${this.operations.promiseFor("bulldoze")}`, ...warnings];
    return { name: "bulldoze", body, corners: [place], label, confirm: "Bulldoze", lines };
  }

  async #build(plan: Plan): Promise<void> {
    this.#showPlan(null);
    this.#say("One moment...");
    const { name, body, label } = plan;
    const [reply] = await this.operations.run(label, [{ name, body }]);
    this.#corners = [];
    const price = priceOf(reply?.cost ?? reply?.constructionCost);
    const done = name === "bulldoze" ? "Removed" : name.includes("zone") ? "Zoned" : "Built";
    this.report(`${done}: ${label}${price}. ${this.operations.promiseFor(name)}`);
  }

  /** Runs `work`, and shows the error at the place if `work` fails. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#isUnanswered = false;
    } catch (error) {
      this.#isUnanswered = error instanceof TypeError;
      if (!this.#isUnanswered) this.#corners = [];
      this.#showPlan(null);
      this.#say(withoutIds(errorInWords(error)));
    }
  }

  /** Says what was done, until it can no longer be undone. */
  report(text: string): void {
    this.#say(text);
    setTimeout(() => {
      if (byId("hint").textContent === text) this.#say(this.#tool ? TOOLS[this.#tool].hint() : "");
    }, UNDO_MS);
  }

  #say(text: string): void {
    byId("hint").textContent = text;
    this.#map.redrawSketch();
  }

  #showPlan(plan: Plan | null): void {
    this.#plan = plan;
    byId("plan").hidden = plan === null;
    const lines = (plan?.lines ?? []).map((textContent) => element("p", { textContent }));
    byId("plan-text").replaceChildren(...lines);
    const buttons = plan
      ? [button(plan.confirm, () => this.#confirmed()), button("Cancel", () => this.#restart())]
      : [];
    byId("plan-buttons").replaceChildren(...buttons);
    this.#map.redrawSketch();
  }

  #sketch(context: CanvasRenderingContext2D, pixelsPerMeter: number): void {
    if (this.#tool && this.#map.isFocusedByKeyboard)
      drawCross(context, this.#map.view.center, pixelsPerMeter);
    const isOpen = this.#corners.length === 1 && this.#map.view.isDrawing();
    const [from, to] = isOpen ? [this.#corners[0], this.#hovered] : this.#corners;
    if (!from) return;
    context.strokeStyle = SKETCH_COLOR;
    context.fillStyle = SKETCH_FILL;
    context.lineWidth = SKETCH_PIXELS / pixelsPerMeter;
    context.beginPath();
    if (to && this.#tool === "zone") context.rect(from.x, from.z, to.x - from.x, to.z - from.z);
    else if (to) {
      context.moveTo(from.x, from.z);
      context.lineTo(to.x, to.z);
    }
    for (const { x, z } of this.#plan?.outline ?? []) context.lineTo(x, z);
    if (this.#plan?.outline) context.closePath();
    context.fill();
    context.stroke();
    context.beginPath();
    for (const { x, z } of this.#corners) context.arc(x, z, DOT_PIXELS / pixelsPerMeter, 0, 2 * Math.PI);
    context.fillStyle = SKETCH_COLOR;
    context.fill();
    if (this.#plan) this.#placePlan(this.#corners.at(-1) ?? from);
  }

  /** Moves the plan beside a place, within the map. */
  #placePlan(place: Place): void {
    const plan = byId("plan");
    const { clientWidth, clientHeight } = plan.parentElement as HTMLElement;
    const { x, y } = this.#map.view.pixelOf(place);
    const { pointer, edge } = PLAN_GAP_PIXELS;
    const within = (value: number, size: number, room: number) =>
      Math.max(edge, Math.min(value, room - size - edge));
    plan.style.left = `${within(x + pointer, plan.offsetWidth, clientWidth)}px`;
    plan.style.top = `${within(y + pointer, plan.offsetHeight, clientHeight)}px`;
  }
}

/** Crosshair in the middle of the map, where Enter chooses a place. */
function drawCross(context: CanvasRenderingContext2D, { x, z }: Place, pixelsPerMeter: number): void {
  const arm = CROSS_PIXELS / pixelsPerMeter;
  context.strokeStyle = SKETCH_COLOR;
  context.lineWidth = SKETCH_PIXELS / pixelsPerMeter;
  context.beginPath();
  context.moveTo(x - arm, z);
  context.lineTo(x + arm, z);
  context.moveTo(x, z - arm);
  context.lineTo(x, z + arm);
  context.stroke();
}

async function nameOf({ kind, id }: Exclude<Selection, { kind: "ground" }>): Promise<string> {
  const facts = await readEntity<{ displayName: string; name?: string }>(`/state/${kind}s/${id}`);
  return facts?.name || facts?.displayName || `this ${kind === "building" ? "building" : "road"}`;
}

function priceOf(cost: number | undefined): string {
  return cost === undefined ? "" : `: ${formatWholeNumber(cost)}`;
}

function warningsOf({ warnings = [] }: CommandReply): string[] {
  return [...new Set(warnings.map(withoutIds))].map((warning) => `Warning: ${warning}`);
}

/** A sentence of the bridge in a person's words, without ids. */
function withoutIds(sentence: string): string {
  return sentence
    .replace(/, segment \d+,/, "")
    .replace(/(building|segment) \d+, (an? )/, "$2")
    .replace(
      /^The new segment crosses .*/,
      "The new road crosses another without a junction: they are not connected",
    )
    .replace(/\d{4,}/g, (digits) => formatWholeNumber(Number(digits)));
}
