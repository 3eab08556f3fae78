/** Plays one sound at a time across all tabs: a player that starts pauses the others. */

const players = new Set<HTMLMediaElement>();
const channel = new BroadcastChannel("carillon-sound");

channel.addEventListener("message", () => pauseOthers(null));

function pauseOthers(playing: HTMLMediaElement | null): void {
  for (const player of players) if (player !== playing) player.pause();
}

/** Adds a player: when it starts, all others pause. Call once for each player. @returns a function that removes it */
export function playAlone(player: HTMLMediaElement): () => void {
  players.add(player);
  player.addEventListener("play", () => {
    pauseOthers(player);
    channel.postMessage("playing");
  });
  return () => players.delete(player);
}
