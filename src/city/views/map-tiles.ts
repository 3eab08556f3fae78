/** Incremental map updates for pages and programs that show a whole large city. */

import { randomUUID } from "node:crypto";
import { z } from "zod";
import { squareKey } from "../geometry.js";
import type { ReadRoute } from "../read-route.js";
import { cachedByRevision } from "../revision-cache.js";
import { isActive, isRuin } from "../simulation/fabric/buildings.js";
import type { Building } from "../simulation/state/entities.js";
import type { World } from "../simulation/state/world.js";
import { levelName } from "../terms.js";
import { type Json, RowCache } from "../wire/answers.js";
import { problemText } from "./listing.js";

const TILE_METERS = 256;
/** The prime of the 32-bit FNV hash. */
const PRIME = 0x01000193;
/** Maximum rows in one response, rounded up to whole tiles. */
const MAX_ROWS = 4000;

interface Tile {
  readonly column: number;
  readonly row: number;
  /** Hash of all values in the tile's rows. */
  hash: number;
  /** Revision number of the tile's last change. No two tiles share a number. */
  revision: number;
}

/** Detects which tiles of a city changed since an earlier request. */
class TileTracker {
  /** Key of the loaded city. A client's `since` is valid only with the same key. */
  readonly key = randomUUID();
  readonly #tiles = new Map<number, Tile>();
  #revision = 0;

  /** Tiles in order of their last change, with their current buildings. */
  update(world: World): { tile: Tile; buildings: readonly Building[] }[] {
    const buildings = new Map<number, Building[]>();
    for (const building of world.buildings.all()) {
      if (building.prefab.helper) continue;
      const key = this.#tileAt(building);
      const there = buildings.get(key);
      if (there) there.push(building);
      else buildings.set(key, [building]);
    }
    for (const [key, tile] of this.#tiles) {
      const hash = hashOf(buildings.get(key) ?? []);
      if (hash !== tile.hash) Object.assign(tile, { hash, revision: ++this.#revision });
    }
    return [...this.#tiles]
      .map(([key, tile]) => ({ tile, buildings: buildings.get(key) ?? [] }))
      .sort((a, b) => a.tile.revision - b.tile.revision);
  }

  #tileAt({ position: { x, z } }: Building): number {
    const [column, row] = [Math.floor(x / TILE_METERS), Math.floor(z / TILE_METERS)];
    const key = squareKey(column, row);
    if (!this.#tiles.has(key)) this.#tiles.set(key, { column, row, hash: 0, revision: ++this.#revision });
    return key;
  }
}

const trackers = new WeakMap<World, TileTracker>();

/**
 * GET /state/map-tiles: buildings, grouped by tiles of 256 m. Sends only tiles that changed after `since`, which is
 * the `revision` of an earlier response with the same `key`. `complete` is false if more tiles have changed than fit
 * into one response. `cityId` names the city; unlike `key`, it outlasts a restart.
 */
export const mapTiles: ReadRoute = {
  path: "/state/map-tiles",
  label: "Read map tiles",
  parameters: {
    key: z.string().optional().describe("The `key` of an earlier response."),
    since: z.int().default(0).describe("The `revision` of that response."),
  },
  read: ({ world, query }) => {
    const tracker = trackers.get(world) ?? new TileTracker();
    trackers.set(world, tracker);
    const since = query.text("key") === tracker.key ? query.integer("since", 0) : 0;
    const changed = tracker.update(world).filter(({ tile }) => tile.revision > since);
    let rows = 0;
    const sent = changed.filter(({ buildings }) => {
      const fits = rows <= MAX_ROWS;
      rows += buildings.length;
      return fits;
    });
    return {
      key: tracker.key,
      // Null in a city of an old save before its first save.
      cityId: world.cityId,
      revision: sent.at(-1)?.tile.revision ?? since,
      complete: sent.length === changed.length,
      networkRevision: world.networkRevision,
      zoneRevision: zoneHash(world),
      tileMeters: TILE_METERS,
      columns: COLUMNS,
      tiles: sent.map(({ tile: { column, row }, buildings }) => {
        return { column, row, buildings: rowCache.write(buildings) };
      }),
    };
  },
};

const COLUMNS = "id x z angleDegrees width length service state problems subService level".split(" ");

const rowCache = new RowCache(buildingRow, ({ prefab, flags, problems }: Building) => [
  prefab,
  flags,
  problems,
]);

function buildingRow(building: Building): Json[] {
  const { id, prefab, position, angleDegrees, problems } = building;
  const state = isRuin(building) ? "ruin" : isActive(building) ? "active" : "inactive";
  const place = [position.x, position.z, angleDegrees, prefab.width, prefab.length];
  const level = levelName(prefab.level);
  return [id, ...place, prefab.service, state, problemText(problems), prefab.subService, level];
}

function hashOf(buildings: readonly Building[]): number {
  let hash = buildings.length;
  for (const { id, prefab, position, angleDegrees, flags, problems } of buildings) {
    const shape = prefab.width * 64 + prefab.length;
    const [x, z, angle] = [position.x * 8, position.z * 8, angleDegrees * 8];
    for (const value of [id, x, z, angle, shape, flags, hashOfText(prefab.name)])
      hash = Math.imul(hash ^ Math.round(value), PRIME);
    if (problems.names.length > 0) hash = Math.imul(hash ^ hashOfText(problemText(problems)), PRIME);
  }
  return hash >>> 0;
}

/** Cache of text hashes: thousands of buildings share few texts. */
const TEXT_HASHES = new Map<string, number>();

function hashOfText(text: string): number {
  const known = TEXT_HASHES.get(text);
  if (known !== undefined) return known;
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), PRIME);
  TEXT_HASHES.set(text, hash);
  return hash;
}

/** Hash of all zones, sent as `zoneRevision`. It survives a restart, so clients can keep theirs. */
const zoneHash = cachedByRevision("zoneRevision", (world: World) => {
  let hash = 0;
  for (const { id, cells } of world.blocks.all()) {
    hash = Math.imul(hash ^ id, PRIME);
    for (const cell of cells) hash = Math.imul(hash ^ cell, PRIME);
  }
  return hash >>> 0;
});
