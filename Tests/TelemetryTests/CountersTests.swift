import Telemetry
import Testing

@Suite("Counters and their sum")
struct CountersTests {
    @Test("A snapshot is the sum over the event loops and the node")
    func snapshotIsTheSum() {
        let loops = [EventLoopCounters(), EventLoopCounters(), EventLoopCounters()]
        let node = NodeCounters()
        for (index, metric) in Metric.allCases.enumerated() {
            for (loop, counters) in loops.enumerated() { counters.add(metric, index * (loop + 1)) }
            node.add(metric, index)
        }
        let snapshot = MetricsSnapshot(loops: loops, node: node)
        for (index, metric) in Metric.allCases.enumerated() {
            #expect(snapshot[metric] == UInt64(7 * index), "\(metric)")
        }
    }

    @Test("A gauge incremented on one loop may be decremented on another")
    func gaugesCrossLoops() {
        let loops = [EventLoopCounters(), EventLoopCounters()]
        loops[0].add(.waiters, 3)
        loops[1].add(.waiters, -2)
        #expect(MetricsSnapshot(loops: loops, node: NodeCounters())[.waiters] == 1)
    }

    @Test("A gauge read between both is not below zero")
    func gaugesDoNotWrap() {
        let loop = EventLoopCounters()
        loop.add(.waiters, -1)
        #expect(MetricsSnapshot(loops: [loop], node: NodeCounters())[.waiters] == 0)
    }

    @Test("The node's gauges are set, not added")
    func nodeGaugesAreSet() {
        let node = NodeCounters()
        node.set(.memoryEntries, to: 5)
        node.set(.memoryEntries, to: 4)
        node.add(.memoryEntries)
        #expect(MetricsSnapshot(loops: [], node: node)[.memoryEntries] == 5)
    }

    @Test("Concurrent additions to the node's counters lose nothing")
    func nodeCountersAreShared() async {
        let node = NodeCounters()
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { @concurrent in
                    for _ in 0..<200_000 { node.add(.accessLinesDropped) }
                }
            }
        }
        #expect(MetricsSnapshot(loops: [], node: node)[.accessLinesDropped] == 1_600_000)
    }

    @Test(
        "A response is counted by its status",
        arguments: [
            (200, .responsesSuccess), (204, .responsesSuccess), (206, .responsesPartial),
            (301, .responsesRedirected), (304, .responsesNotModified), (400, .responsesClientError),
            (431, .responsesClientError), (500, .responsesServerError),
            (504, .responsesServerError),
        ] as [(UInt16, Metric)])
    func answersAreCountedByStatus(status: UInt16, metric: Metric) {
        #expect(Metric.responses(status: status) == metric)
    }
}
