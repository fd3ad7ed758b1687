import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("The disk log compared with a dictionary", .disabled(if: Trials.isReduced))
struct DiskLogModelTests {
    @Test(
        "Reads give the last stored response, never a deleted one, within the disk limit",
        arguments: Trials.seeds(1...4, long: 60))
    func model(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        let rig = try LogRig(segments: Int.random(in: 4...8, using: &dice), seed: seed)
        let script = LogScript(
            .init(
                steps: 1_500, names: 60, bytesUsual: seed % 2 == 0 ? 20_000 : 150_000,
                bytesMax: 900_000, restarts: true), using: &dice)
        var play = LogPlay(rig, names: script.size.names)
        for (number, step) in script.steps.enumerated() {
            try play.perform(step)
            play.checkCap()
            if case .store(let response) = step {
                let found = try rig.find(response.number)
                play.expect(found?.body == response.body, "step \(number) is not there")
            }
            if number % 100 == 0 { try play.checkCurrent() }
            try #require(play.wrongs == [], "seed \(seed), step \(number)")
        }
        try play.checkCurrent()
        #expect(play.wrongs == [], "seed \(seed)")
        #expect(rig.figures[.reclaims] > 5)
        #expect(rig.figures[.reinsertedRecords] > 0)
        #expect(rig.figures[.lostRecords] == 0 && rig.figures[.failures] == 0)
    }

    @Test("A response larger than a segment is not stored and displaces nothing")
    func tooLarge() throws {
        let rig = try LogRig(segments: 4, seed: 1)
        let small = Answer(1, version: 1, bytes: 100)
        try rig.store(small)
        #expect(try rig.store(Answer(1, version: 2, bytes: 1 << 20)) == .tooLarge)
        let isThere = try rig.find(1)?.body == small.body
        #expect(isThere)
    }

    @Test("The largest response that fits a segment is stored; one byte more is too large")
    func largest() throws {
        let rig = try LogRig(segments: 4, seed: 1)
        let record = Answer(1, version: 1, bytes: 0).record(version: .zero, now: rig.now)
        let rest = record.extent.metaBytes + 16 * 8 + SegmentFooter.bytesCount(of: 1)
        let room = (1 << 20 - DiskFormat.headerBytes - rest) / 64 * 64
        let largest = (room - 64...room + 64).reversed().first { bytes in
            (try? rig.store(Answer(1, version: 1, bytes: bytes))) == .written
        }
        let most = try #require(largest)
        let isThere = try rig.find(1)?.body == Answer(1, version: 1, bytes: most).body
        #expect(isThere)
        #expect(most > 1 << 20 - 8192)
        #expect(try rig.store(Answer(2, version: 1, bytes: most + 1)) == .tooLarge)
        for version in 2...9 { try rig.store(Answer(version, version: 1, bytes: most)) }
        try rig.restart()
        let isLast = try rig.find(9)?.body == Answer(9, version: 1, bytes: most).body
        #expect(isLast)
        #expect(rig.volume.peakBytes <= rig.capBytes)
    }
}
