/**
 * The HTTP API of a coordinator.
 *
 * @module
 */
export { assertGuarded, ServiceRefused } from "./access.ts";
export { createService, type Service, type ServiceCluster, type ServiceOptions } from "./app.ts";
export { listen, type Listening, type ListenOptions, ListenRefused } from "./listen.ts";
