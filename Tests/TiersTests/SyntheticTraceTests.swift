import Simulation
import Testing
import Tiers
import Trials

/// What the policies are worth where some objects are large, told by synthetic traces.
@Suite(.disabled(if: Trials.isReduced))
struct SyntheticTraceTests {
    @Test(
        "One large newcomer after the other flushes nothing that is worth more", arguments: [1, 16])
    func largeNewcomers(shards: Int) {
        let trace = SyntheticTrace.largeNewcomers.trace
        let quiet = ReplayStatistics(of: trace, without: 1 << 20)
        let ours = trace.replay(.nuthatch, capacityBytes: 64 << 20, shards: shards)
        let paper = trace.replay(.s3fifo, capacityBytes: 64 << 20)
        #expect(ours.objectMissRatio < paper.objectMissRatio)
        // As if they were not there, but for their own misses.
        #expect(ours.objectMissRatio < quiet.objectMissRatio + 0.005)
    }

    @Test("A disk's segments hold the large objects of a web mix, as long as enough remain")
    func segments() {
        let trace = SyntheticTrace.webMix.trace
        let bytes = 1812 << 20
        let plan = trace.replay(.nuthatchDisk, capacityBytes: bytes)
        let fine = trace.replay(.nuthatchDisk, capacityBytes: bytes, segments: 113)
        #expect(plan.byteMissRatio < fine.byteMissRatio - 0.015)
    }

    @Test(
        "What is larger than the limit on objects is stored nowhere",
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

    @Test("Memory in front of a disk misses what memory alone does, or less")
    func bothTiers() {
        let trace = SyntheticTrace.webMix.trace
        let both = trace.replay(.nuthatchBoth, capacityBytes: 640 << 20)
        let memory = trace.replay(.nuthatch, capacityBytes: 64 << 20)
        #expect(both.misses < both.memoryMisses)
        #expect(both.missedBytes < memory.missedBytes)
    }
}

extension ReplayStatistics {
    /// Misses of 64 MiB of memory on the trace, of which what is larger than `bytes` is stored
    /// nowhere.
    fileprivate init(of trace: EvictionTrace, without bytes: Int) {
        self = trace.replay(.nuthatch, capacityBytes: 64 << 20, objectBytesMax: bytes)
    }
}
