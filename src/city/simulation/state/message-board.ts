/** The recent messages of citizens and city, and the silence after each kind so that nothing is said too often. */
import type { Message } from "../../game.js";

const KEPT = 100;

export class MessageBoard {
  /** Oldest first. */
  messages: Message[] = [];
  /** Message id -> the frame from which it may be said again. */
  quietUntil = new Map<string, number>();

  isQuiet(messageId: string, frame: number): boolean {
    return frame < (this.quietUntil.get(messageId) ?? 0);
  }

  post(message: Message, quietUntilFrame: number): void {
    this.messages.push(message);
    if (this.messages.length > KEPT) this.messages.shift();
    this.quietUntil.set(message.messageId, quietUntilFrame);
  }
}
