/** A server side whose answers the test decides, one by one: the client is tested without waiting for anything. */

import type { Invoke } from "../host/app";
import type { ServiceStatus } from "../../shared/status";

interface Held {
  resolve(output: unknown): void;
  reject(error: Error): void;
}

export class Scripted {
  readonly calls: { method: string; input: unknown }[] = [];
  readonly answers: Record<string, (input: never) => unknown> = {};
  readonly #held = new Map<string, Held[]>();
  #revision = 0;

  constructor(private status: ServiceStatus) {
    this.answers["semantic-index.status"] = () => this.status;
    this.answers["semantic-index.watch"] = ({ since }: { since?: string }) =>
      since === `life.${this.#revision}` ? this.hold("semantic-index.watch") : this.#seen();
    this.answers["semantic-index.workspace-status"] = ({ path }: { path: string }) =>
      this.status.registrations.find((each) => each.path === path) ?? null;
  }

  readonly invoke: Invoke = async (method, input) => {
    this.calls.push({ method, input });
    const answer = this.answers[method] as ((input: unknown) => unknown) | undefined;
    if (answer === undefined) throw new Error(`Plugin paseo-semantic-index does not contribute RPC ${method}`);
    return await answer(input);
  };

  /** What was called, without the watching and asking. */
  get actions(): { method: string; input: unknown }[] {
    return this.calls.filter(({ method }) => !/\.(?:watch|status|workspace-status)$/.test(method));
  }

  change(status: ServiceStatus): void {
    this.status = status;
    this.#revision += 1;
    for (const { resolve } of this.release("semantic-index.watch")) resolve(this.#seen());
  }

  /** An answer that the test gives later. */
  hold(method: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#held.set(method, [...(this.#held.get(method) ?? []), { resolve, reject }]);
    });
  }

  release(method: string): Held[] {
    const held = this.#held.get(method) ?? [];
    this.#held.delete(method);
    return held;
  }

  #seen(): object {
    return { revision: `life.${this.#revision}`, status: this.status };
  }
}
