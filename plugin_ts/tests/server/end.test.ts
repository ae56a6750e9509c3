/** How the plugin ends, and everything that it has started with it: by the daemon's word, by its death, by its own. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { bounded, gone, World } from "../world";

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.end());

test("stopping the plugin ends the service in order, and answers whoever waits", async () => {
  const subject = await world.plugin(world.configured());
  await subject.ready();
  const { revision } = (await subject.host.invoke("semantic-index.watch", {})) as { revision: string };
  const waiting = subject.host.invoke("semantic-index.watch", { since: revision });

  const exit = await subject.host.stop();

  expect(await waiting).toMatchObject({
    status: { phase: "stopping", message: "Semantic index service is stopping." },
  });
  expect(exit).toEqual({ code: 0, signal: null });
  expect(world.starts().at(-1)).toContain("ended in order");
});

test("a call that the service has not answered is refused when the plugin stops", async () => {
  const subject = await world.plugin(world.configured());
  await subject.ready();
  await world.double("double.silence", { method: "semantic-index.reindex" });
  const waiting = subject.host.invoke("semantic-index.reindex", { id: "a" });
  waiting.catch(() => undefined);
  while (
    !JSON.stringify(await world.double("double.calls")).includes('"method":"semantic-index.reindex","params":{"id"')
  ) {
    // each look is a round trip
  }

  const exit = await subject.host.stop();

  await expect(waiting).rejects.toThrow("The connection to the semantic index service has ended");
  expect(exit).toEqual({ code: 0, signal: null });
});

test.each([
  ["deaf is ended by a signal, in order,", { deaf: true }, "ended in order"],
  ["deaf and stubborn is killed", { deaf: true, stubborn: true }, "serve"],
])("a service that is %s before Paseo would have to kill the plugin", async (_, behaviour, last) => {
  world.behave(behaviour);
  const subject = await world.plugin(world.configured());
  await subject.ready();
  const [pid = 0] = world.pids();

  const exit = await subject.host.stop();

  expect(exit).toEqual({ code: 0, signal: null }); // not by the signals that the daemon sends after two seconds
  await bounded(gone(pid), "the service is still there");
  expect(world.starts().at(-1)).toContain(last);
});

test("stopping the plugin while the service starts leaves no process behind", async () => {
  world.behave({ mute: true });
  const subject = await world.plugin(world.configured());
  while (world.pids().length === 0) await new Promise((resolve) => setImmediate(resolve));

  const exit = await subject.host.stop();

  expect(exit).toEqual({ code: 0, signal: null });
  await bounded(gone(world.pids()[0] ?? 0), "the service is still there");
});

test("a daemon that dies takes the plugin and the service along", async () => {
  const subject = await world.plugin(world.configured());
  await subject.ready();
  const [pid = 0] = world.pids();

  subject.host.child.disconnect();

  expect(await bounded(subject.host.exited, "the plugin is still there")).toEqual({ code: 0, signal: null });
  await bounded(gone(pid), "the service is still there");
  expect(world.starts().at(-1)).toContain("ended in order");
});

test("a plugin that is killed takes the service along, by its life line", async () => {
  const subject = await world.plugin(world.configured());
  await subject.ready();
  const [pid = 0] = world.pids();

  subject.host.child.kill("SIGKILL");

  await bounded(gone(pid), "the service is still there");
  expect(world.starts().at(-1)).toContain("ended in order");
});
