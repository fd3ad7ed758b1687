import Simulation
import Testing
import Tiers
import Trials

/// The policies on synthetic traces with some large objects.
@Suite(.disabled(if: Trials.isReduced))
struct SyntheticTraceTests {
    @Test(
        "A series of large one-hit objects evicts nothing more valuable", arguments: [1, 16])
    func largeNewcomers(shards: Int) {
        let trace = SyntheticTrace.largeNewcomers.trace
        let quiet = ReplayStatistics(of: trace, without: 1 << 20)
        let ours = trace.replay(.nuthatch, capacityBytes: 64 << 20, shards: shards)
        let paper = trace.replay(.s3fifo, capacityBytes: 64 << 20)
        #expect(ours.objectMissRatio < paper.objectMissRatio)
        // As without the large objects, apart from their own misses.
        #expect(ours.objectMissRatio < quiet.objectMissRatio + 0.005)
    }

    @Test("The planned segments hold the large objects of a web mix better than small ones")
    func segments() {
        let trace = SyntheticTrace.webMix.trace
        let bytes = 1812 << 20
        let plan = trace.replay(.nuthatchDisk, capacityBytes: bytes)
        let fine = trace.replay(.nuthatchDisk, capacityBytes: bytes, segments: 113)
        #expect(plan.byteMissRatio < fine.byteMissRatio - 0.015)
    }

    @Test(
        "Objects above the size limit are not stored",
        arguments: EvictionKind.allCases)
    func objectLimit(kind: EvictionKind) {
        var trace = EvictionTrace(name: "two")
        for _ in 0..<10 {
            trace.append(key: 1, size: 1_000)
            trace.append(key: 2, size: 1_001)
        }
        let figures = trace.replay(kind, capacityBytes: 1 << 20, objectBytesMax: 1_000)
        #expect(figures.misses == 11)
    }

    @Test("Memory with a disk misses no more than memory alone")
    func bothTiers() {
        let trace = SyntheticTrace.webMix.trace
        let both = trace.replay(.nuthatchBoth, capacityBytes: 640 << 20)
        let memory = trace.replay(.nuthatch, capacityBytes: 64 << 20)
        #expect(both.misses < both.memoryMisses)
        #expect(both.missedBytes < memory.missedBytes)
    }
}

extension ReplayStatistics {
    /// A replay with 64 MiB of memory in which objects of more than `bytes` are not stored.
    fileprivate init(of trace: EvictionTrace, without bytes: Int) {
        self = trace.replay(.nuthatch, capacityBytes: 64 << 20, objectBytesMax: bytes)
    }
}
