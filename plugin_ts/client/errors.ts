/** Errors as people read them. */

/** The host wraps what a handler said: `Request failed: <sentence> requestType=… code=…`. */
const WRAPPED = /^Request failed: (.*?)(?: requestType=\S+)?(?: code=\S+)?$/s;

/** The sentence of whoever refused: the service's own, wherever it comes from there. */
export function sentence(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return WRAPPED.exec(message)?.[1] ?? message;
}
