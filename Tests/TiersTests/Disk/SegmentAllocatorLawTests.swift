import Ground
import Testing
import Tiers
import Trials

/// Invariants for any sequence of records and any policy of re-insertion.
@Suite struct SegmentAllocatorLawTests {
    static let keepings = SegmentLog.Keeping.allCases

    private func settings(_ segments: Int, reinserted: Int = 8) -> SegmentAllocator.Settings {
        SegmentAllocator.Settings(
            segments: segments, segmentBytes: 1000, headerBytes: 64, footerBytes: 32,
            footerBytesPerRecord: 4, reinsertedPerAdmitted: reinserted)
    }

    /// Runs a random step; records are small, of middle size, almost a segment, or too large.
    private func step(_ log: inout SegmentLog, _ dice: inout SplitMix64) {
        let queue: SegmentQueue = dice.next() % 4 == 0 ? .main : .small
        switch dice.next() % 64 {
        case 0..<30: log.admit(Int(1 + dice.next() % 60), in: queue)
        case 30..<45: log.admit(Int(100 + dice.next() % 400), in: queue)
        case 45..<54: log.admit(Int(880 + dice.next() % 22), in: queue)
        case 54: log.close(queue)
        default: log.forgetOne()
        }
    }

    @Test(
        "Every record gets a place, places do not overlap, and the limit holds",
        arguments: [4, 5, 7, 16, 64], keepings)
    func randomLives(segments: Int, keeping: SegmentLog.Keeping) {
        for seed in Trials.seeds(0...3) {
            var dice = SplitMix64(seed: seed)
            var log = SegmentLog(settings(segments), keeping: keeping, seed: seed)
            for number in 0..<Trials.count(2000) {
                step(&log, &dice)
                if number % 50 == 0 { log.audit() }
            }
            #expect(log.wrongs.first == nil, "seed \(seed)")
            #expect(log.reclaims > 0 || Trials.isReduced)
        }
    }

    @Test("The invariants hold for a log of thousands of segments", arguments: keepings)
    func thousands(keeping: SegmentLog.Keeping) {
        var log = SegmentLog(settings(3000), keeping: keeping, seed: 1)
        var dice = SplitMix64(seed: 2)
        for _ in 0..<Trials.count(8000) {
            log.admit(Int(400 + dice.next() % 500), in: dice.next() % 3 == 0 ? .main : .small)
        }
        log.audit()
        #expect(log.wrongs.first == nil)
        #expect(log.reclaims > 3000 || Trials.isReduced)
    }

    @Test(
        "Re-inserting everything is bounded in reclaims and in bytes for each byte admitted",
        arguments: [0, 1, 3, 8], [4, 6, 32])
    func keepsEverything(lent: Int, segments: Int) {
        for length in [1...20, 440...460, 451...451, 890...900, 1...900] {
            let settings = settings(segments, reinserted: lent)
            var log = SegmentLog(settings, keeping: .everything, seed: 7)
            var dice = SplitMix64(seed: 8)
            for _ in 0..<Trials.count(3000) {
                let bytes = length.lowerBound + Int(dice.next() % UInt64(length.count))
                log.admit(bytes, in: dice.next() % 2 == 0 ? .main : .small)
            }
            #expect(log.wrongs.first == nil, "\(length)")
            #expect(log.reclaimsPerPlaceMax <= 2 * lent + 4, "\(length)")
            let bound = (lent + 1) * log.admittedBytes + lent * settings.capacityBytes
            #expect(log.writtenBytes <= bound, "\(length)")
        }
    }

    @Test(
        "The log continues after a restart at any point", arguments: [4, 5, 12], keepings)
    func restarts(segments: Int, keeping: SegmentLog.Keeping) {
        for seed in Trials.seeds(0...3) {
            var dice = SplitMix64(seed: seed)
            var log = SegmentLog(settings(segments), keeping: keeping, seed: seed)
            for _ in 0..<40 {
                for _ in 0..<dice.next() % 80 { step(&log, &dice) }
                log.restart()
                log.audit()
            }
            #expect(log.wrongs.first == nil, "seed \(seed)")
        }
    }
}
