/** Plays one sound at a time across all tabs: a player that starts pauses the others. */
import type WaveSurfer from "wavesurfer.js";

const players = new Set<WaveSurfer>();
const channel = new BroadcastChannel("carillon-sound");

channel.addEventListener("message", () => pauseOthers(null));

function pauseOthers(playing: WaveSurfer | null): void {
  for (const player of players) if (player !== playing && player.isPlaying()) player.pause();
}

/** Adds a player: when it starts, all others pause. Call once for each player. */
export function playAlone(player: WaveSurfer): void {
  players.add(player);
  player.on("play", () => {
    pauseOthers(player);
    channel.postMessage("playing");
  });
  player.on("destroy", () => players.delete(player));
}
