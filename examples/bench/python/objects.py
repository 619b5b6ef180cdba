"""Objects: tasks of four kinds that pass packets to each other, n rounds, in the manner of Richards."""

import json
import sys
import time


class Packet:
    __slots__ = ("kind", "value", "hops")

    def __init__(self, kind, value):
        self.kind, self.value, self.hops = kind, value, 0


class Task:
    def __init__(self, name):
        self.name, self.queue, self.done, self.next = name, [], 0, None

    def handle(self, packet):
        raise NotImplementedError

    def run(self):
        queue, self.queue = self.queue, []
        for packet in queue:
            packet.hops += 1
            self.done += 1
            self.handle(packet)
            self.next.queue.append(packet)


class Worker(Task):
    def handle(self, packet):
        packet.value = (packet.value * 31 + 7) & 0xFFFF


class Device(Task):
    def handle(self, packet):
        packet.kind = "read" if packet.value & 1 else "write"


class Handler(Task):
    def __init__(self, name):
        super().__init__(name)
        self.seen = {"read": 0, "write": 0}

    def handle(self, packet):
        self.seen[packet.kind] += 1


class Idle(Task):
    def handle(self, packet):
        if packet.hops % 3 == 0:
            packet.value ^= 0xD008
        packet.value >>= packet.hops % 2


def work(n):
    tasks = [Worker("w"), Device("d"), Handler("h"), Idle("i")]
    for a, b in zip(tasks, tasks[1:] + tasks[:1]):
        a.next = b
    tasks[0].queue = [Packet("read", i * 7919) for i in range(24)]
    for _ in range(n):
        for task in tasks:
            task.run()
    return [[t.name, t.done] for t in tasks] + [tasks[2].seen]


def main():
    n = json.load(sys.stdin)["input"]["n"]
    began = time.perf_counter_ns()
    result = work(n)
    print(json.dumps({"result": result, "ns": time.perf_counter_ns() - began}))


main()
