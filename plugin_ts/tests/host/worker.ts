/** The process in which the daemon runs a plugin's server side: the messages that were observed, and nothing more. */

import { createRequire } from "node:module";
import type { ZodType } from "zod";
import { defineRpc } from "./sdk";

interface Contract {
  readonly name: string;
  readonly input: ZodType;
  readonly output: ZodType;
}
type Request =
  | { type: "initialize"; bundle: string }
  | { type: "invoke"; requestId: string; method: string; input: unknown }
  | { type: "shutdown" };
type Cleanup = () => void | Promise<void>;
type Setup = (context: object) => Cleanup;

/** Host modules are found from the daemon's own package, not from the plugin's. */
const daemonRequire = createRequire(process.argv[2] ?? "");
const handlers = new Map<string, [Contract, (input: unknown) => unknown]>();
let cleanup: Cleanup | undefined;
let isStopping = false;

process.on("message", (request: Request) => {
  if (request.type === "initialize") initialize(request.bundle);
  else if (request.type === "invoke") void invoke(request.requestId, request.method, request.input);
  else void shutdown();
});

function initialize(bundle: string): void {
  try {
    const evaluate = globalThis.eval; // in the global scope: no module, no directory
    const factory = evaluate(bundle) as (require: (name: string) => unknown) => { default: Setup };
    cleanup = factory(provide).default({ handle: register });
    if (typeof cleanup !== "function") throw new Error("Plugin contribution must return a cleanup function");
    process.send?.({ type: "ready", methods: [...handlers.keys()].sort() });
  } catch (error) {
    process.send?.({ type: "fatal", error: describe(error) });
  }
}

function provide(name: string): unknown {
  if (name.startsWith("@getpaseo/plugin/client")) throw new Error(`${name} is available only in plugin client code`);
  return name.startsWith("@getpaseo/plugin") ? { defineRpc } : daemonRequire(name);
}

function register(contract: Contract, handler: (input: unknown) => unknown): void {
  if (handlers.has(contract.name)) throw new Error(`Duplicate plugin RPC method: ${contract.name}`);
  handlers.set(contract.name, [contract, handler]);
}

async function invoke(requestId: string, method: string, input: unknown): Promise<void> {
  if (isStopping) return;
  try {
    const [contract, handler] = handlers.get(method) ?? [];
    if (contract === undefined || handler === undefined) throw new Error(`Plugin does not contribute RPC ${method}`);
    const output = await contract.output.parseAsync(await handler(await contract.input.parseAsync(input)));
    process.send?.({ type: "result", requestId, output });
  } catch (error) {
    process.send?.({ type: "error", requestId, error: describe(error) });
  }
}

async function shutdown(): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  try {
    await cleanup?.();
  } catch (error) {
    console.error("Plugin cleanup failed", error);
  }
  process.disconnect(); // and now nothing may keep the loop alive
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
