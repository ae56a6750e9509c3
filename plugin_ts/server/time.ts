/** Waiting with a bound: every timer that this plugin starts is started, and cleared, here. */

/** What the plugin waits for, in milliseconds. Tests shorten some. */
export interface Timing {
  /** How long a program may take from its start to its greeting. */
  readonly start: number;
  /** How long opening a connection may take. */
  readonly connect: number;
  /** How long a call may take altogether: Paseo gives up after 30 seconds, with a sentence that explains nothing. */
  readonly call: number;
  /** How long a watch is held while nothing changes. */
  readonly hold: number;
  /** Between two signs of life of a connection. */
  readonly heartbeat: number;
  /** The first pause before another try, and the longest. */
  readonly firstPause: number;
  readonly longestPause: number;
  /** How long a connection must have lasted for the next failure to count as the first. */
  readonly stable: number;
  /** How long a program has after the end of its input, after SIGTERM, after SIGKILL: less than two seconds together. */
  readonly graces: readonly [number, number, number];
}

export const TIMING: Timing = {
  start: 120_000,
  connect: 5_000,
  call: 28_000,
  hold: 20_000,
  heartbeat: 10_000,
  firstPause: 250,
  longestPause: 30_000,
  stable: 10_000,
  graces: [1_000, 400, 200],
};

/** The work's outcome, or a rejection with `message` if that takes longer; then its signal is aborted for that reason. */
export async function within<T>(
  milliseconds: number,
  work: (signal: AbortSignal) => Promise<T>,
  message: string,
): Promise<T> {
  const end = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(message);
      reject(error);
      end.abort(error);
    }, milliseconds);
  });
  try {
    return await Promise.race([work(end.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether a promise is settled within a time; how it is settled does not matter. */
export async function settles(milliseconds: number, promise: Promise<unknown>): Promise<boolean> {
  const settled = promise.then(
    () => true,
    () => true,
  );
  return within(milliseconds, () => settled, "").catch(() => false);
}

/** Wait; less long if the signal is aborted. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}

/** Pauses that double from one failure to the next. */
export class BackOff {
  #failures = 0;

  constructor(
    private readonly first: number,
    private readonly longest: number,
  ) {}

  next(): number {
    return Math.min(this.longest, this.first * 2 ** this.#failures++);
  }

  reset(): void {
    this.#failures = 0;
  }
}
