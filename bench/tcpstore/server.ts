/** Our TCPStore server as a process of its own, for benchmarks: prints its port, ends when its input does. */
import process from "node:process";
import { TcpStoreServer } from "../../src/drivers/tcpstore/mod.ts";

const server = await TcpStoreServer.listen({ host: "127.0.0.1" });
console.log(server.port);
process.stdin.on("end", () => void server.close()).resume();
