/**
 * The plugin's log: lines on this process's own output, which Paseo keeps and shows to everybody who may use the plugin.
 *
 * So no secret may ever be in one. The service promises that of its lines. Of the secrets that the plugin itself holds
 * this module makes sure, for those lines and for ours: it cannot know what else is in the service's own files.
 */

const SECRETS = /^SEMANTIC_INDEX_.*(?:TOKEN|API_KEY)$/;
/** Paseo cuts lines at 16 KiB, and keeps 256 KiB of a plugin. */
const LONGEST_LINE = 2_000;

export class Log {
  readonly #secrets = new Set<string>();

  /** The tokens and keys of the service that the environment holds are kept out from the start. */
  constructor(environment: NodeJS.ProcessEnv) {
    for (const [name, value] of Object.entries(environment)) {
      if (SECRETS.test(name)) this.keepOut(value?.trim() ?? "");
    }
  }

  /** Never show this text. */
  keepOut(secret: string): void {
    if (secret !== "") this.#secrets.add(secret);
  }

  info(line: string): void {
    console.log(this.#line(line));
  }

  error(line: string): void {
    console.error(this.#line(line));
  }

  /** Text that may be shown to everybody who may use the plugin. */
  clean(text: string): string {
    let clean = text;
    for (const secret of this.#secrets) clean = clean.replaceAll(secret, "…");
    return clean;
  }

  #line(line: string): string {
    const clean = this.clean(line);
    return `[semantic-index] ${clean.length > LONGEST_LINE ? `${clean.slice(0, LONGEST_LINE)}…` : clean}`;
  }
}
