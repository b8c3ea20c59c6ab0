/** What a host needs of a logger: pino's shape. */
export interface Logger {
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

export const silent: Logger = { info: () => {}, warn: () => {}, error: () => {} };
