import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { Connection, NobodyListens, ServiceError, shaped } from "../../server/connection";
import { TIMING, type Timing } from "../../server/time";
import { serviceStatus } from "../../shared/status";
import { ServiceDouble } from "../doubles/service";
import { bounded } from "../world";

const TOKEN = "control-token-of-the-test";
let service: ServiceDouble;
let end: AbortController;
beforeEach(async () => {
  end = new AbortController();
  service = new ServiceDouble(TOKEN);
  await service.listen();
});
afterEach(async () => {
  end.abort();
  await service.close();
});

function open(
  url = service.url,
  timing: Timing = TIMING,
  notify: (method: string, params: unknown) => void = () => undefined,
): Promise<Connection> {
  return Connection.open(url, TOKEN, timing, end.signal, notify);
}

test("answers find their calls, in whatever order they come", async () => {
  const connection = await open();
  service.silent.add("first");
  service.methods.second = () => "two";

  const first = connection.call("first", {}, end.signal);
  first.catch(() => undefined);

  expect(await connection.call("second", {}, end.signal)).toBe("two");
  service.hangUp(1001);
  await expect(first).rejects.toThrow("The connection to the semantic index service has ended (1001).");
});

test("no more calls are under way than the service takes, and all are answered in their turn", async () => {
  const connection = await open();
  service.methods.echo = ({ number }) => number;
  const numbers = Array.from({ length: 100 }, (_, number) => number);

  const answers = await Promise.all(
    numbers.map((number) => connection.call("echo", { number }, new AbortController().signal)),
  );

  expect(answers).toEqual(numbers);
  expect(service.mostInFlight).toBeGreaterThan(1);
  expect(service.mostInFlight).toBeLessThanOrEqual(8);
});

test("calls that are given up make room for others, and are not sent if they had not been", async () => {
  const connection = await open();
  service.silent.add("hang");
  const giveUp = new AbortController();
  const hanging = Array.from({ length: 9 }, (_, number) => connection.call("hang", { number }, giveUp.signal));
  const outcomes = Promise.allSettled(hanging);
  service.methods.echo = ({ number }) => number;
  const waiting = connection.call("echo", { number: 1 }, end.signal);

  giveUp.abort(new Error("it took too long"));

  expect(await bounded(waiting, "there is no room")).toBe(1);
  expect(await outcomes).toEqual(hanging.map(() => ({ status: "rejected", reason: new Error("it took too long") })));
  expect(service.calls.map(({ params }) => params.number)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 1]);
});

test("a call that was given up before there was a connection is not sent", async () => {
  const connection = await open();
  service.methods.echo = ({ number }) => number;

  const late = connection.call("echo", { number: 1 }, AbortSignal.abort(new Error("it took too long")));

  await expect(late).rejects.toThrow("it took too long");
  expect(await connection.call("echo", { number: 2 }, end.signal)).toBe(2);
  expect(service.calls).toHaveLength(1);
});

test("the answer to a call that was given up is ignored", async () => {
  const connection = await open();
  const giveUp = new AbortController();
  service.methods.slow = () => giveUp.abort(new Error("it took too long"));
  service.methods.echo = ({ number }) => number;

  await expect(connection.call("slow", {}, giveUp.signal)).rejects.toThrow("it took too long");
  expect(getEventListeners(giveUp.signal, "abort")).toEqual([]);

  expect(await connection.call("echo", { number: 1 }, end.signal)).toBe(1);
  expect(await connection.call("echo", { number: 2 }, end.signal)).toBe(2);
});

test("a refusal carries the service's sentence and number", async () => {
  const connection = await open();

  const refused = await connection.call("semantic-index.nothing", {}, end.signal).catch((error: unknown) => error);

  expect(refused).toBeInstanceOf(ServiceError);
  expect(refused).toMatchObject({ message: "There is no method semantic-index.nothing.", code: -32601 });
});

test("what the service pushes is handed on", async () => {
  const pushed = new Promise<unknown>((resolve) => {
    void open(service.url, TIMING, (method, params) => resolve([method, params])).then((connection) =>
      connection.call("semantic-index.watch", {}, end.signal),
    );
  });

  expect(await bounded(pushed, "nothing was pushed")).toMatchObject([
    "semantic-index.changed",
    { revision: "double.0" },
  ]);
});

test("an address at which nobody listens is told from other failures", async () => {
  await service.close();

  await expect(open()).rejects.toBeInstanceOf(NobodyListens);
  await expect(open("unix:/no/such/socket")).rejects.toBeInstanceOf(NobodyListens);
});

test("a service without the door says that it is to be updated", async () => {
  const old = createServer((_, response) => response.writeHead(404).end()).listen(0, "127.0.0.1");
  await new Promise((resolve) => old.once("listening", resolve));

  await expect(open(`http://127.0.0.1:${(old.address() as AddressInfo).port}`)).rejects.toThrow(
    "has no plugin RPC: update semindex",
  );
  old.close();
});

test("a connection that is refused leaves nothing behind, however often it is tried", async () => {
  const listening = (): number => getEventListeners(end.signal, "abort").length;

  for (let tries = 0; tries < 3; tries++) {
    await expect(Connection.open(service.url, "another token", TIMING, end.signal, () => undefined)).rejects.toThrow(
      "refuses the control token",
    );
  }

  const left = async (): Promise<void> => {
    while (listening() > 0) await new Promise((resolve) => setImmediate(resolve));
  };
  await bounded(left(), () => `${listening()} listeners are left`);
});

test("a service that shows no sign of life is given up", async () => {
  const mute = new WebSocketServer({ port: 0, host: "127.0.0.1", autoPong: false });
  await new Promise((resolve) => mute.once("listening", resolve));
  const connection = await open(`http://127.0.0.1:${(mute.address() as AddressInfo).port}`, {
    ...TIMING,
    heartbeat: 10,
  });

  expect(await bounded(connection.closed, "it was not given up")).toContain("has ended (1006)");
  mute.close();
});

test("a service that lives is not given up, however little it says", async () => {
  const connection = await open(service.url, { ...TIMING, heartbeat: 5 });
  let pings = 0;
  const socket = (connection as unknown as { socket: { on(event: "pong", listener: () => void): void } }).socket;

  await bounded(
    new Promise<void>((resolve) => socket.on("pong", () => ++pings === 5 && resolve())),
    "no answers to pings",
  );

  expect(service.connections).toBe(1);
});

test("a message that is not JSON ends the connection", async () => {
  const mad = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  mad.on("connection", (socket) => socket.send("{"));
  await new Promise((resolve) => mad.once("listening", resolve));
  const connection = await open(`http://127.0.0.1:${(mad.address() as AddressInfo).port}`);

  expect(await bounded(connection.closed, "it goes on")).toContain("has ended (1007)");
  mad.close();
});

test("when the plugin ends, so does every connection, even one that is being opened", async () => {
  const connection = await open();
  const opening = open();
  opening.catch(() => undefined);

  end.abort();

  await expect(opening).rejects.toThrow();
  await bounded(connection.closed, "the connection is still open");
  await expect(open()).rejects.toThrow();
});

test("an answer of another shape is refused with the place where it differs", () => {
  expect(() => shaped(serviceStatus, { phase: "asleep" })).toThrow(
    /something else than this plugin understands[^]*phase/,
  );
});
