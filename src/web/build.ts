/**
 * Tools that build roads, zones and services. The user clicks places on the map. A dry run then shows cost and
 * warnings. The bridge builds the plan when the user confirms.
 */
import { type CommandReply, type Place, read, sendCommand } from "./api.js";
import { formatWholeNumber } from "./charts.js";
import { serviceStyle, ZONE_NAMES } from "./colors.js";
import type { DrawOverMap } from "./map.js";
import { button, byId, element } from "./panel.js";

type ToolName = "road" | "zone" | "service";

/** Command to send after confirmation, and the points of its outline on the map. */
interface Plan {
  readonly name: string;
  readonly body: object;
  readonly corners: readonly Place[];
}

const TOOLS: Readonly<Record<ToolName, { label: string; clicks: number; hint: string }>> = {
  road: { label: "Road", clicks: 2, hint: "Click the start, then the end." },
  zone: { label: "Zone", clicks: 2, hint: "Grey cells can be zoned. Click two opposite corners." },
  service: {
    label: "Service",
    clicks: 1,
    hint: "Click near a road. The building takes the nearest free place.",
  },
};
/** Zone names in commands. ZONE_NAMES has the displayed names in the same order. */
const ZONES = [
  "ResidentialLow",
  "ResidentialHigh",
  "CommercialLow",
  "CommercialHigh",
  "Industrial",
  "Office",
];
const SNAP_METERS = 16;
/** Maximum distance of a suggested place from the click; places farther away are ignored. */
const NEAR_METERS = 80;
const SKETCH_COLOR = "#c2185b";
const SKETCH_FILL = "#c2185b30";
const SKETCH_PIXELS = 3;
const DOT_PIXELS = 6;

interface Prefab {
  readonly name: string;
  readonly displayName: string;
  readonly service: string;
  readonly growable?: boolean;
  readonly elevation?: string;
  readonly constructionCost?: number;
  readonly costPerMeter?: number;
}

export class BuildTools {
  readonly #onChange: () => void;
  readonly #onTool: () => void;
  readonly #buttons: Readonly<Record<ToolName, HTMLElement>>;
  readonly #choices: Readonly<Record<ToolName, HTMLSelectElement>>;
  /** Whether the city is embedded. A running game has fewer commands. */
  #isEmbedded = true;
  #tool: ToolName | null = null;
  #corners: Place[] = [];
  #hovered: Place | null = null;

  /**
   * @param onChange called when the sketch drawn over the map changes
   * @param onTool called when another tool, or none, is chosen
   */
  constructor(onChange: () => void, onTool: () => void) {
    this.#onChange = onChange;
    this.#onTool = onTool;
    const each = <T>(make: (tool: ToolName) => T) =>
      Object.fromEntries((Object.keys(TOOLS) as ToolName[]).map((tool) => [tool, make(tool)])) as Record<
        ToolName,
        T
      >;
    this.#buttons = each((tool) =>
      button(TOOLS[tool].label, () => this.#choose(this.#tool === tool ? null : tool)),
    );
    this.#choices = each((tool) => {
      const ariaLabel = `${TOOLS[tool].label} to build`;
      return element("select", { ariaLabel, hidden: true, onchange: () => this.#restart() });
    });
    byId("tools").append(...Object.values(this.#buttons), ...Object.values(this.#choices));
    document.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && this.#tool) this.#choose(null);
    });
  }

  get isZoning(): boolean {
    return this.#tool === "zone";
  }

  /** Fills the selection lists with the roads, zones and services that the bridge can build. */
  async offer(isEmbedded: boolean): Promise<void> {
    this.#isEmbedded = isEmbedded;
    const { networks } = await read<{ networks: Prefab[] }>("/prefabs/networks");
    const { buildings } = await read<{ buildings: Prefab[] }>("/prefabs/buildings");
    const { road, zone, service } = this.#choices;
    const isOnGround = ({ elevation }: Prefab) => elevation === undefined || elevation === "ground";
    fillByService(road, networks.filter(isOnGround), ({ costPerMeter }) => perUnit(costPerMeter, " a metre"));
    const placed = buildings.filter(({ growable, service }) => !(growable ?? GROWABLE.test(service)));
    fillByService(service, placed, ({ constructionCost }) => perUnit(constructionCost, ""));
    zone.replaceChildren(
      ...ZONES.map((value, i) => element("option", { value, textContent: ZONE_NAMES[i] as string })),
      element("option", { value: "Unzoned", textContent: "No zone" }),
    );
    road.value = "Basic Road";
  }

  /** Handles a click on the map. Returns false if no tool is chosen. */
  place(place: Place): boolean {
    if (!this.#tool) return false;
    if (this.#corners.length >= TOOLS[this.#tool].clicks) this.#corners = [];
    this.#corners = [...this.#corners, place];
    this.#onChange();
    if (this.#corners.length === TOOLS[this.#tool].clicks) void this.#attempt(() => this.#try());
    else this.#showMessage([TOOLS[this.#tool].hint]);
    return true;
  }

  hover(place: Place): void {
    this.#hovered = place;
    if (this.#tool && this.#corners.length === 1) this.#onChange();
  }

  readonly sketch: DrawOverMap = (context, pixelsPerMeter) => {
    const isOpen = this.#corners.length === 1 && this.#tool !== "service";
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
    context.fill();
    context.stroke();
    context.beginPath();
    for (const { x, z } of this.#corners) context.arc(x, z, DOT_PIXELS / pixelsPerMeter, 0, 2 * Math.PI);
    context.fillStyle = SKETCH_COLOR;
    context.fill();
  };

  #choose(tool: ToolName | null): void {
    this.#tool = tool;
    for (const name of Object.keys(TOOLS) as ToolName[]) {
      this.#buttons[name].setAttribute("aria-pressed", String(name === tool));
      this.#choices[name].hidden = name !== tool;
    }
    this.#restart();
    this.#onTool();
  }

  #restart(): void {
    this.#corners = [];
    this.#showMessage(this.#tool ? [TOOLS[this.#tool].hint] : []);
    this.#onChange();
  }

  /** Sends the command as a dry run, shows its cost and warnings, and asks for confirmation. */
  async #try(): Promise<void> {
    const plan = await this.#plan();
    this.#corners = [...plan.corners];
    this.#onChange();
    const reply = await sendCommand(plan.name, { ...plan.body, dryRun: true });
    const cost = reply.cost ?? reply.constructionCost;
    const price = cost === undefined ? [] : [`Cost: ${formatWholeNumber(cost)}`];
    this.#showMessage(
      [...linesOf(reply), ...price],
      button("Build", () => void this.#attempt(() => this.#build(plan))),
      button("Cancel", () => this.#restart()),
    );
  }

  async #plan(): Promise<Plan> {
    const [start, end = start] = this.#corners as [Place, Place];
    const chosen = this.#tool ? this.#choices[this.#tool].value : "";
    if (this.#tool === "road") {
      const laying = this.#isEmbedded ? { snapDistance: SNAP_METERS, split: true } : {};
      const body = { roadPrefab: chosen, start, end, ...laying };
      return { name: "build-network", body, corners: [start, end] };
    }
    if (this.#tool === "zone") {
      const corners = [start, end];
      if (this.#isEmbedded)
        return { name: "zone-rectangle", body: { zone: chosen, from: start, to: end }, corners };
      const center = { x: (start.x + end.x) / 2, z: (start.z + end.z) / 2 };
      const radius = Math.hypot(end.x - start.x, end.z - start.z) / 2;
      return { name: "set-zone", body: { zone: chosen, center, radius }, corners };
    }
    const site = { buildingPrefab: chosen, position: start, angleDegrees: 0 };
    const { suggestions = [] } = this.#isEmbedded
      ? await sendCommand("place-building", { ...site, suggest: true, dryRun: true })
      : {};
    const near = suggestions.find(
      ({ position: { x, z } }) => Math.hypot(x - start.x, z - start.z) < NEAR_METERS,
    );
    const body = near ? { ...site, position: near.position, angleDegrees: near.angleDegrees } : site;
    return { name: "place-building", body, corners: [body.position] };
  }

  async #build({ name, body }: Plan): Promise<void> {
    const reply = await sendCommand(name, body);
    this.#corners = [];
    this.#onChange();
    const { segmentId, segmentIds = segmentId === undefined ? [] : [segmentId], buildingId } = reply;
    const built = segmentIds.map((id) => ({ entityType: "netSegment", id }));
    const undone = buildingId === undefined ? built : [{ entityType: "building", id: buildingId }];
    if (undone.length === 0) {
      this.#showMessage([reply.message, "To undo it, paint another zone or no zone over it."]);
      return;
    }
    const undo = button("Undo", () => void this.#attempt(() => this.#undo(undone)));
    this.#showMessage([...linesOf(reply), "Undo bulldozes it; the cost is not paid back."], undo);
  }

  async #undo(built: readonly object[]): Promise<void> {
    let message = "";
    for (const each of built) message = (await sendCommand("bulldoze", each)).message;
    this.#showMessage([built.length === 1 ? message : `${built.length} segments were removed.`]);
  }

  /** Runs `work`, and shows the error if `work` fails. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#showMessage([
        error instanceof TypeError ? "The city does not answer." : String((error as Error).message),
      ]);
    }
  }

  #showMessage(lines: readonly string[], ...buttons: readonly HTMLElement[]): void {
    byId("plan").hidden = lines.length === 0;
    byId("plan-text").replaceChildren(...lines.map((textContent) => element("p", { textContent })));
    byId("plan-buttons").replaceChildren(...buttons);
  }
}

const GROWABLE = /^(Residential|Commercial|Industrial|Office)$/;

function linesOf({ message, warnings = [] }: CommandReply): string[] {
  return [message, ...warnings.map((warning) => `Warning: ${warning}`)];
}

function perUnit(cost: number | undefined, unit: string): string {
  return cost === undefined ? "" : ` (${formatWholeNumber(cost)}${unit})`;
}

function fillByService(
  select: HTMLSelectElement,
  prefabs: readonly Prefab[],
  priceOf: (prefab: Prefab) => string,
): void {
  const groups = [...Map.groupBy(prefabs, ({ service }) => service)].map(([service, inside]) => {
    const options = inside.map((prefab) =>
      element("option", { value: prefab.name, textContent: `${prefab.displayName}${priceOf(prefab)}` }),
    );
    const label = service === "Road" ? "Roads" : serviceStyle(service).label;
    return element("optgroup", { label }, ...options);
  });
  select.replaceChildren(...groups);
}
