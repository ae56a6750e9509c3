import { expect, test } from "vitest";
import type { Connection } from "../../server/connection";
import { Gate } from "../../server/gate";

const connection = (name: string): Connection => ({ name }) as unknown as Connection;

test("who comes before it opens is let through when it does", async () => {
  const gate = new Gate();
  const waiting = gate.pass();
  const first = connection("first");

  gate.open(first);

  expect(await waiting).toBe(first);
});

test("after a failure everybody is refused with its reason at once, until it opens", async () => {
  const gate = new Gate();
  const waiting = gate.pass();
  gate.fail(new Error("no program"));
  await expect(waiting).rejects.toThrow("no program");
  await expect(gate.pass()).rejects.toThrow("no program");

  const second = connection("second");
  gate.open(second);

  expect(await gate.pass()).toBe(second);
});

test("a connection that is lost is waited for anew, by those before and after a repeated loss", async () => {
  const gate = new Gate();
  gate.open(connection("lost"));
  gate.expect();
  const waiting = gate.pass();
  gate.expect();
  const next = connection("next");

  gate.open(next);

  expect(await waiting).toBe(next);
});

test("once closed it stays closed", async () => {
  const gate = new Gate();
  const waiting = gate.pass();

  gate.close(new Error("stopping"));
  gate.open(connection("late"));
  gate.expect();

  await expect(waiting).rejects.toThrow("stopping");
  await expect(gate.pass()).rejects.toThrow("stopping");
});
