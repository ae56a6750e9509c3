import { expect, test } from "vitest";
import { BackOff, pause, TIMING, within } from "../../server/time";

test("pauses double up to the longest, and begin anew after a success", () => {
  const backOff = new BackOff(250, 1_500);

  expect([1, 2, 3, 4, 5].map(() => backOff.next())).toEqual([250, 500, 1_000, 1_500, 1_500]);
  backOff.reset();
  expect(backOff.next()).toBe(250);
});

test("a pause ends with its signal, whenever that comes", async () => {
  const end = new AbortController();
  const pausing = pause(2 ** 30, end.signal);

  end.abort();

  await pausing;
  await pause(2 ** 30, end.signal);
});

test("the bounds keep what Paseo demands: calls below 30 seconds, an end below two", () => {
  expect(TIMING.call).toBeLessThan(30_000);
  expect(TIMING.hold).toBeLessThanOrEqual(25_000);
  expect(TIMING.graces.reduce((sum, grace) => sum + grace)).toBeLessThan(2_000);
});

test("work that takes too long is told to end, for the reason that its caller is given", async () => {
  let told: AbortSignal | undefined;
  const endless = (signal: AbortSignal): Promise<never> => {
    told = signal;
    return new Promise(() => undefined);
  };

  await expect(within(1, endless, "it took too long")).rejects.toThrow("it took too long");

  expect(told?.reason).toEqual(new Error("it took too long"));
});
