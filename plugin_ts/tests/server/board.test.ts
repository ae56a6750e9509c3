import { expect, test } from "vitest";
import { Board, withoutService } from "../../server/board";
import { service } from "../doubles/statuses";

const board = (hold: number): Board => new Board(withoutService("starting", "It starts."), hold);
const FOR_EVER = 2 ** 30;

test("who has seen nothing, or something of another life, is answered at once", async () => {
  const subject = board(FOR_EVER);

  expect((await subject.watch(undefined)).status.message).toBe("It starts.");
  expect((await subject.watch("another-life.0")).status.message).toBe("It starts.");
});

test("who has seen everything is answered by the next change, with what is true then", async () => {
  const subject = board(FOR_EVER);
  const waiting = [subject.watch(subject.seen.revision), subject.watch(subject.seen.revision)];

  subject.publish(service({ message: "changed" }));

  const told = await Promise.all(waiting);
  expect(told.map(({ status }) => status.message)).toEqual(["changed", "changed"]);
  expect(told[0]?.revision).toBe(subject.seen.revision);
});

test("who has missed several changes is told the last one", async () => {
  const subject = board(FOR_EVER);
  const { revision } = subject.seen;
  subject.publish(service({ message: "first" }));
  subject.publish(service({ message: "second" }));

  expect((await subject.watch(revision)).status.message).toBe("second");
});

test("while nothing changes the answer is held, and then given all the same", async () => {
  const subject = board(10);
  const { revision } = subject.seen;

  expect(await subject.watch(revision)).toEqual(subject.seen);
});

test("closing answers everybody, keeps nobody waiting afterwards, and takes no further status", async () => {
  const subject = board(FOR_EVER);
  const waiting = subject.watch(subject.seen.revision);

  subject.close(withoutService("stopping", "It stops."));
  subject.publish(service());

  expect((await waiting).status.phase).toBe("stopping");
  expect((await subject.watch(subject.seen.revision)).status.phase).toBe("stopping");
});

test("revisions of two lives are never the same", () => {
  expect(board(1).seen.revision).not.toBe(board(1).seen.revision);
});
