/** The server side of the plugin: what its procedures answer, and its end. */

import type { PluginRpcContract, RpcArgument, RpcOutput } from "@getpaseo/plugin";
import type { PluginServerContext } from "@getpaseo/plugin/server";
import { registerRpc, reindexRpc, releaseRpc, statusRpc, watchRpc, workspaceStatusRpc } from "../shared/rpc";
import { Board, withoutService } from "./board";
import { shaped } from "./connection";
import { Gate } from "./gate";
import { Log } from "./log";
import { Supervisor } from "./supervisor";
import { type Timing, within } from "./time";

const LOADING = "Semantic index plugin is loading configuration.";
const STOPPING = "Semantic index service is stopping.";

export class Backend {
  readonly #board: Board;
  readonly #gate = new Gate();
  readonly #supervisor: Supervisor;
  readonly #running: Promise<void>;
  #closing: Promise<void> | null = null;

  /** Returns at once; the service is started beside it. */
  constructor(
    environment: NodeJS.ProcessEnv,
    private readonly timing: Timing,
  ) {
    this.#board = new Board(withoutService("starting", LOADING), timing.hold);
    this.#supervisor = new Supervisor(environment, this.#board, this.#gate, new Log(environment), timing);
    this.#running = this.#supervisor.run();
  }

  contribute(server: PluginServerContext): void {
    server.handle(statusRpc, () => this.#board.seen.status);
    server.handle(watchRpc, ({ since }) => this.#board.watch(since));
    for (const contract of [workspaceStatusRpc, registerRpc, releaseRpc, reindexRpc]) {
      server.handle<typeof contract.input, typeof contract.output>(contract, (request) =>
        this.#call(contract, request),
      );
    }
  }

  /** In less than two seconds: Paseo kills a plugin that takes longer. Whoever waits is answered first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#board.close(withoutService("stopping", STOPPING));
    this.#gate.close(new Error("The semantic index plugin is stopping."));
    await this.#supervisor.end(); // calls that the service has not answered end with its connection
    await this.#running;
    // All that is answered must be on its way before Paseo's process closes the channel to the daemon.
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Ask the service. Rejects with its sentence, or with the reason why there is none. */
  async #call<Contract extends PluginRpcContract>(
    contract: Contract,
    request: RpcArgument<Contract>,
  ): Promise<RpcOutput<Contract>> {
    const late = `The semantic index service has not answered within ${this.timing.call / 1000} seconds; what it was asked to do may go on.`;
    const ask = async (signal: AbortSignal): Promise<unknown> =>
      (await this.#gate.pass()).call(contract.name, Object(request), signal);
    return shaped(contract.output, await within(this.timing.call, ask, late)) as RpcOutput<Contract>;
  }
}
