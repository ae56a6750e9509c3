/** A double of the service's plugin door: a real server on a real socket, whose state the test decides. */

import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { RegistrationStatus, ServiceStatus } from "../../shared/status";
import { registration, service } from "./statuses";

type Params = Record<string, unknown>;
type Method = (params: Params, socket: WebSocket) => unknown;

/** A refusal, as the service words it. */
export class Refusal extends Error {}

export class ServiceDouble {
  /** What was called, in order. */
  readonly calls: { method: string; params: Params }[] = [];
  /** Methods that are never answered. */
  readonly silent = new Set<string>();
  readonly methods: Record<string, Method> = {
    "semantic-index.status": () => this.status,
    "semantic-index.watch": ({ since }, socket) => this.#watch(since, socket),
    "semantic-index.workspace-status": ({ path }) =>
      this.status.registrations.find((each) => each.path === path) ?? null,
    "semantic-index.register": (params) => this.#register(params),
    "semantic-index.release": ({ id }) => this.#release(String(id)),
    "semantic-index.reindex": ({ id }) => this.#reindex(String(id)),
  };
  status: ServiceStatus = service();
  url = "";
  /** Calls that were under way at the same time, at most. */
  mostInFlight = 0;
  #inFlight = 0;
  readonly #sockets = new Set<WebSocket>();
  readonly #watching = new Set<WebSocket>();
  readonly #http: Server;
  readonly #door = new WebSocketServer({ noServer: true });
  #changes = 0;

  constructor(private readonly token: string) {
    this.#http = createServer((_, response) => response.writeHead(404).end());
    this.#http.on("upgrade", (request, socket, head) => {
      if (request.url !== "/v1/rpc" || request.headers.authorization !== `Bearer ${this.token}`) {
        socket.end(
          `HTTP/1.1 ${request.url === "/v1/rpc" ? 401 : 404} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
        );
        return;
      }
      this.#door.handleUpgrade(request, socket, head, (opened) => this.#serve(opened));
    });
  }

  /** On a port of its own, or on a Unix socket. */
  async listen(path?: string): Promise<string> {
    await new Promise<void>((resolve) => {
      if (path === undefined) this.#http.listen(0, "127.0.0.1", resolve);
      else this.#http.listen(path, resolve);
    });
    this.url = path === undefined ? `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}` : `unix:${path}`;
    return this.url;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Change the status and tell everybody who watches. */
  change(fields: Partial<ServiceStatus>): void {
    this.#changes += 1;
    this.status = { ...this.status, ...fields, revision: `double.${this.#changes}` };
    const params = { revision: this.status.revision, status: this.status };
    const text = JSON.stringify({ jsonrpc: "2.0", method: "semantic-index.changed", params });
    for (const socket of this.#watching) socket.send(text);
  }

  /** End all connections, but go on listening. */
  hangUp(code: number): void {
    for (const socket of this.#sockets) socket.close(code);
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.terminate();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #serve(socket: WebSocket): void {
    this.#sockets.add(socket);
    socket.on("close", () => {
      this.#sockets.delete(socket);
      this.#watching.delete(socket);
    });
    socket.on("message", (data) => {
      const { id, method, params } = JSON.parse(String(data)) as { id: number; method: string; params: Params };
      this.calls.push({ method, params });
      this.#inFlight += 1;
      this.mostInFlight = Math.max(this.mostInFlight, this.#inFlight);
      // Answers come a moment later, as in life: so calls are under way at the same time.
      setImmediate(() => {
        if (this.silent.has(method)) return;
        this.#inFlight -= 1;
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, ...this.#answer(method, params, socket) }));
      });
    });
  }

  #answer(method: string, params: Params, socket: WebSocket): object {
    const answer = this.methods[method];
    if (answer === undefined) return { error: { code: -32601, message: `There is no method ${method}.` } };
    try {
      return { result: answer(params, socket) };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { error: { code: -32000, message: error.message, data: { code: "conflict" } } };
    }
  }

  #watch(since: unknown, socket: WebSocket): object {
    this.#watching.add(socket);
    const { revision } = this.status;
    if (since !== revision) {
      const params = { revision, status: this.status };
      socket.send(JSON.stringify({ jsonrpc: "2.0", method: "semantic-index.changed", params }));
    }
    return { revision };
  }

  #register({ id, path, baselinePath }: Params): RegistrationStatus {
    const { registrations } = this.status;
    if (baselinePath !== undefined && !registrations.some((each) => each.path === baselinePath)) {
      throw new Refusal("The primary baseline must be registered before its worktree");
    }
    const baseline = baselinePath === undefined ? {} : { baselinePath: String(baselinePath) };
    const made = registration({ id: String(id), path: String(path), ...baseline, state: "Indexing", percent: 0 });
    this.change({ registrations: [...registrations.filter((each) => each.id !== made.id), made] });
    return made;
  }

  #release(id: string): object {
    const { registrations } = this.status;
    if (!registrations.some((each) => each.id === id)) throw new Refusal(`Unknown registration: ${id}`);
    this.change({ registrations: registrations.filter((each) => each.id !== id) });
    return { released: id, purged: false, points: 0, bytes: 0, drained: 0, cancelled: 0, durationMs: 3 };
  }

  #reindex(id: string): object {
    if (!this.status.registrations.some((each) => each.id === id)) throw new Refusal(`Unknown registration: ${id}`);
    return {
      id: randomUUID(),
      registrationId: id,
      kind: "reindex",
      state: "running",
      startedAt: "2026-11-30T12:00:01.000Z",
    };
  }
}
