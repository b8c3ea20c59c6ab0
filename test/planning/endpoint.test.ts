import assert from "node:assert/strict";
import { test } from "node:test";
import {
  hostFault,
  hostKind,
  ipc,
  ipv6Groups,
  isLoopback,
  isWildcard,
  tcp,
  withPort,
} from "../../src/planning/endpoint.ts";

test("an endpoint takes its port after the bind; a unix socket has none", () => {
  assert.equal(withPort(tcp("fd00::1", 0), 5555).address, "tcp://[fd00::1]:5555");
  assert.equal(withPort(ipc("/run/m/in0"), 5555).address, "ipc:///run/m/in0");
});

test("loopback in every spelling, and nothing else", () => {
  for (
    const host of [
      ...["127.0.0.1", "127.9.8.7", "localhost", "LOCALHOST", "localhost.", "a.localhost"],
      ...["::1", "[::1]", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1"],
    ]
  ) assert.equal(isLoopback(host), true, host);
  for (
    const host of [
      "10.0.0.1",
      "128.0.0.1",
      "fd00::1",
      "::2",
      "1::1",
      "localhost.example",
      "127.example",
    ]
  ) assert.equal(isLoopback(host), false, host);
});

test("a wildcard can be listened on and not dialled", () => {
  for (const host of ["0.0.0.0", "::", "[::]", "*", "0"]) {
    assert.equal(isWildcard(host), true, host);
  }
  for (const host of ["10.0.0.1", "::1", "0x.example"]) assert.equal(isWildcard(host), false, host);
});

test("hosts are addresses or names, and what is neither says what it is", () => {
  for (const host of ["10.0.0.1", "fd00::1", "[fd00::1]", "fe80::1%eth0", "node-3.cluster.local"]) {
    assert.equal(hostFault(host), undefined, host);
  }
  assert.equal(hostFault("http://a"), "is a URL, and a host alone is wanted.");
  assert.equal(hostFault("node:29550"), "has a port, and a host alone is wanted.");
  assert.equal(hostFault("fd00:::1"), "is not an IPv6 address.");
  assert.equal(hostFault("10.0.0.256"), "is not an IPv4 address.");
  assert.equal(hostFault("a b"), "is not a host name.");
  assert.deepEqual(["10.0.0.1", "[::1]", "head"].map(hostKind), ["ipv4", "ipv6", "name"]);
});

test("IPv6 groups, with a gap, with IPv4 at the end, and not at all", () => {
  assert.deepEqual(ipv6Groups("fd00::1"), [0xfd00, 0, 0, 0, 0, 0, 0, 1]);
  assert.deepEqual(ipv6Groups("::ffff:1.2.3.4"), [0, 0, 0, 0, 0, 0xffff, 0x102, 0x304]);
  for (const wrong of ["1:2:3", "1::2::3", "12345::", "::ffff:1.2.3.256", "1:2:3:4:5:6:7:8::"]) {
    assert.equal(ipv6Groups(wrong), undefined, wrong);
  }
});
