/** A connection to the service: JSON-RPC 2.0 over a WebSocket. It owns calls in flight, and knows nothing of what they mean. */

import net from "node:net";
import WebSocket from "ws";
import { type ZodType, z } from "zod";
import type { Timing } from "./time";

/** There is nobody at the address. */
export class NobodyListens extends Error {}

/** A call that the service refused, with its own sentence. */
export class ServiceError extends Error {
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
  }
}

interface Pending {
  readonly text: string;
  resolve(result: unknown): void;
  reject(error: Error): void;
}

/**
 * Calls whose answer is awaited at the same time; the others take turns. The service refuses a seventeenth of one
 * connection: as many again may be given up here while it still works on them.
 */
const MAX_IN_FLIGHT = 8;

export type Notify = (method: string, params: unknown) => void;

export class Connection {
  /** Why it ended, in one sentence. It never rejects. */
  readonly closed: Promise<string>;
  /** Calls without an answer, in their order: the first few are sent, the others will be. */
  readonly #pending = new Map<number, Pending>();
  readonly #sent = new Set<number>();
  readonly #heartbeat: NodeJS.Timeout;
  #calls = 0;

  /**
   * Connect to `http://host:port` or `unix:/path`; the signal ends the connection whatever it is doing. Rejects with
   * NobodyListens, or with a sentence that says what is wrong.
   */
  static open(url: string, token: string, timing: Timing, signal: AbortSignal, notify: Notify): Promise<Connection> {
    const socket = dial(url, token, timing);
    const end = (): void => socket.terminate();
    signal.addEventListener("abort", end);
    socket.once("close", () => signal.removeEventListener("abort", end));
    if (signal.aborted) end();
    return new Promise((resolve, reject) => {
      socket.once("unexpected-response", (_, response) => {
        reject(new Error(refusal(url, response.statusCode)));
        end(); // whoever listens to this event has to; "close" follows
      });
      socket.once("error", (error: NodeJS.ErrnoException) => {
        const isAbsent = error.code === "ECONNREFUSED" || error.code === "ENOENT";
        const message = `The semantic index service at ${url} cannot be reached: ${error.message || error.code}.`;
        reject(isAbsent ? new NobodyListens(message) : new Error(message));
      });
      socket.once("open", () => resolve(new Connection(socket, timing, notify)));
    });
  }

  private constructor(
    private readonly socket: WebSocket,
    timing: Timing,
    private readonly notify: Notify,
  ) {
    socket.on("error", () => undefined); // "close" follows
    socket.on("message", (data) => this.#receive(String(data)));
    this.closed = new Promise((resolve) => {
      socket.once("close", (code) => {
        const why = `The connection to the semantic index service has ended (${code}).`;
        clearInterval(this.#heartbeat);
        for (const call of this.#pending.values()) call.reject(new Error(why));
        this.#pending.clear();
        resolve(why);
      });
    });
    let isAlive = true;
    socket.on("pong", () => {
      isAlive = true;
    });
    this.#heartbeat = setInterval(() => {
      if (!isAlive) return socket.terminate();
      isAlive = false;
      socket.ping();
    }, timing.heartbeat);
  }

  /**
   * Rejects with ServiceError if the service refuses, with Error if the connection ends before it has answered, and with
   * the signal's reason if that comes before: then the call is not sent any more, or its answer will be ignored.
   */
  async call(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    signal.throwIfAborted();
    if (this.socket.readyState !== WebSocket.OPEN) {
      throw new Error("The connection to the semantic index service has ended.");
    }
    const id = ++this.#calls;
    const giveUp = (): void => {
      this.#take(id)?.reject(signal.reason);
      // Not at once: calls that were made together are given up together, and one must not make the other be sent.
      setImmediate(() => this.#send());
    };
    signal.addEventListener("abort", giveUp);
    try {
      return await new Promise((resolve, reject) => {
        const text = JSON.stringify({ jsonrpc: "2.0", id, method, params });
        this.#pending.set(id, { text, resolve, reject });
        this.#send();
      });
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** End it at once: nothing that the service does depends on our goodbye. */
  end(): void {
    this.socket.terminate();
  }

  #send(): void {
    for (const [id, { text }] of this.#pending) {
      if (this.#sent.size >= MAX_IN_FLIGHT) return;
      if (this.#sent.has(id)) continue;
      this.#sent.add(id);
      this.socket.send(text);
    }
  }

  /** The call of this id, if it has no answer yet; its place is free from now on. */
  #take(id: number): Pending | undefined {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    this.#sent.delete(id);
    return call;
  }

  #receive(text: string): void {
    let message: Record<string, unknown>;
    try {
      message = Object(JSON.parse(text)) as Record<string, unknown>;
    } catch {
      this.socket.close(1007);
      return;
    }
    if (typeof message.method === "string") return this.notify(message.method, message.params);
    if (typeof message.id !== "number") return;
    const call = this.#take(message.id);
    this.#send();
    if (message.error === undefined) return call?.resolve(message.result);
    const { message: sentence, code } = Object(message.error) as { message?: unknown; code?: unknown };
    call?.reject(new ServiceError(String(sentence), Number(code)));
  }
}

/** What the service told, if it keeps to the shape; else an error that says where it does not. */
export function shaped<T>(schema: ZodType<T>, told: unknown): T {
  const { success, data, error } = schema.safeParse(told);
  if (success) return data;
  throw new Error(
    `The semantic index service told something else than this plugin understands: ${z.prettifyError(error)}`,
  );
}

function dial(url: string, token: string, timing: Timing): WebSocket {
  const options = {
    headers: { authorization: `Bearer ${token}` },
    handshakeTimeout: timing.connect,
    perMessageDeflate: false,
  };
  if (!url.startsWith("unix:")) return new WebSocket(new URL("/v1/rpc", url.replace(/^http/, "ws")), options);
  const path = url.slice("unix:".length);
  return new WebSocket("ws://localhost/v1/rpc", { ...options, createConnection: () => net.connect(path) });
}

function refusal(url: string, status: number | undefined): string {
  if (status === 401) {
    return `The semantic index service at ${url} refuses the control token: give the Paseo daemon the token that it was started with.`;
  }
  if (status === 404) return `The semantic index service at ${url} has no plugin RPC: update semindex.`;
  return `The semantic index service at ${url} refuses the plugin's connection (HTTP ${status}).`;
}
