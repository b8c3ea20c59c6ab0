/**
 * Planning: from a configuration to what each process of a data-parallel deployment binds, dials, starts and
 * waits for. Pure: nothing is opened, asked or started here.
 *
 * @module
 */
export * from "./command.ts";
export * from "./config.ts";
export * from "./deployment.ts";
export * from "./devices.ts";
export * from "./endpoint.ts";
export * from "./facts.ts";
export * from "./finding.ts";
export * from "./mode.ts";
export * from "./placement/mod.ts";
export * from "./platform.ts";
export * from "./preflight.ts";
export * from "./refusal.ts";
export * from "./restarts.ts";
export * from "./topology.ts";
