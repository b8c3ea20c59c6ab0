/** A real browser for tests: Debian's Chromium through playwright-core, and why there is none where there is none. */
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { type ConsoleServer, startConsole, storeSource } from "../../src/console/mod.ts";
import { FileStore } from "../../src/journal/stores/mod.ts";

const PLACES = [process.env["MUSTER_CHROMIUM"], "/usr/bin/chromium", "/usr/bin/chromium-browser"];
const executablePath = PLACES.find((path) => path !== undefined && existsSync(path));

/** `skip` of a test: false, or the reason. */
export const noBrowser: false | string = executablePath === undefined
  ? "there is no Chromium here: apt-get install chromium, or set MUSTER_CHROMIUM"
  : false;

/** Where screenshots go, to be looked at. */
export const pictures: string = process.env["MUSTER_SCREENSHOTS"] ??
  join(tmpdir(), "muster-screenshots");

export async function launch(): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  return await chromium.launch({
    executablePath: executablePath!,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A page that counts what it asks of anybody but its server, and what goes wrong in it. */
export interface Watched {
  readonly page: Page;
  readonly foreign: string[];
  readonly errors: string[];
  close(): Promise<void>;
}

export async function open(
  browser: Browser,
  address: string,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  const foreign: string[] = [];
  const errors: string[] = [];
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== new URL(address).origin && protocol !== "data:") foreign.push(request.url());
  });
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    const text = message.text();
    // A server that was stopped on purpose is not an error of the page.
    if (message.type() === "error" && !/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(text)) {
      errors.push(text);
    }
  });
  await page.goto(address);
  return { page, foreign, errors, close: () => context.close() };
}

export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}

/** A journal in a fresh directory, and a console that follows it. */
export async function serveJournal(
  text: string,
  options: { port?: number; command?: Parameters<typeof startConsole>[0]["command"] } = {},
): Promise<{ server: ConsoleServer; file: string; directory: string }> {
  const directory = mkdtempSync(join(tmpdir(), "muster-browser-"));
  const file = join(directory, "000001-000000000001.jsonl");
  writeFileSync(file, text);
  const server = await serveDirectory(directory, options);
  return { server, file, directory };
}

export const serveDirectory = (
  directory: string,
  options: { port?: number; command?: Parameters<typeof startConsole>[0]["command"] } = {},
): Promise<ConsoleServer> =>
  startConsole({
    source: storeSource(new FileStore(directory), { pollMs: 50 }),
    port: options.port ?? 0,
    ...(options.command ? { command: options.command } : {}),
  });
