import type { PluginServerContext } from "@getpaseo/plugin/server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Backend } from "../../server/backend";
import { TIMING } from "../../server/time";
import { ServiceDouble } from "../doubles/service";
import { bounded, TOKEN, World } from "../world";

let world: World;
let service: ServiceDouble;
let backend: Backend;
beforeEach(async () => {
  world = new World();
  service = new ServiceDouble(TOKEN);
  world.hold(await service.listen());
  backend = new Backend(world.configured(), { ...TIMING, call: 1_000 });
});
afterEach(async () => {
  await backend.close();
  await service.close();
  await world.end();
});

type Handler = (request: object) => Promise<unknown>;

/** What the backend contributes, as the host would call it. */
function procedures(): Record<string, Handler> {
  const found: Record<string, Handler> = {};
  const handle = ({ name }: { name: string }, handler: Handler): void => {
    found[name] = handler;
  };
  backend.contribute({ handle } as unknown as PluginServerContext);
  return found;
}

test("calls that took too long hold up no others, and what was not asked in time is never asked", async () => {
  const handlers = procedures();
  const call = (method: string, request: object): Promise<unknown> =>
    bounded(Promise.resolve(handlers[method]?.(request)), method);
  await call("semantic-index.workspace-status", { path: "/code" });
  service.silent.add("semantic-index.release");

  const releases = Array.from({ length: 8 }, () => call("semantic-index.release", { id: "a" }));
  const registration = call("semantic-index.register", { id: "b", path: "/code/b" });
  for (const outcome of await Promise.allSettled([...releases, registration])) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { message: expect.stringContaining("1 seconds") } });
  }

  expect(await call("semantic-index.workspace-status", { path: "/code/b" })).toBeNull();
  expect(service.calls.map(({ method }) => method)).not.toContain("semantic-index.register");
});
