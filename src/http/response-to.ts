import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/**
 * Resolves with the response to a sent request. Settles at the latest when the connection ends.
 * @throws Error if the connection fails, closes without a response, or is switched to another protocol
 */
export function responseTo(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const refuse = ({ statusCode, statusMessage }: IncomingMessage, socket: Socket) => {
      socket.destroy();
      reject(new Error(`the answer is ${statusCode} ${statusMessage}`));
    };
    // Without a header `Upgrade`, Node reports a switch of protocols as a response without an end.
    sent.on("response", (response) =>
      response.statusCode === 101 ? refuse(response, response.socket) : resolve(response),
    );
    sent.on("upgrade", refuse);
    sent.on("error", reject);
    sent.on("close", () => reject(new Error("the connection was closed without an answer")));
  });
}
