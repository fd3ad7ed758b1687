import Glibc
import Ground
import Store
import Testing
import Tiers
import Trials

@Suite("The disk log under failing system calls", .disabled(if: Trials.isReduced))
struct DiskLogFaultTests {
    private static let size = LogScript.Size(
        steps: 120, names: 24, bytesUsual: 80_000, bytesMax: 400_000)

    /// Plays the script and skips steps that fail.
    private func play(_ play: inout LogPlay, _ script: LogScript) throws {
        for step in script.steps {
            do { try play.perform(step) } catch {
                guard error is DiskFile.Failure else { throw error }
            }
        }
    }

    /// Fills the log several times over, so that every segment is reclaimed, then restarts.
    private func goOn(_ play: inout LogPlay) throws {
        // The next delete also writes the marks that could not be written.
        try play.perform(.delete([23]))
        for version in 10_000..<10_020 {
            let response = Answer(version % 20, version: version, bytes: 500_000)
            try play.perform(.store(response))
            let isThere = try play.rig.find(response.number)?.body == response.body
            play.expect(isThere, "\(version) is not there")
        }
        try play.checkCurrent()
        try play.perform(.restart)
        try play.checkCurrent()
    }

    @Test(
        "After any failing operations the log continues and serves nothing wrong",
        arguments: [(1, nil), (3, nil), (7, "write"), (40, "write")] as [(Int, String?)])
    func operations(count: Int, call: String?) throws {
        var dice = SplitMix64(seed: UInt64(count))
        let rig = try LogRig(segments: 5, seed: UInt64(count))
        var base = LogPlay(rig, names: Self.size.names)
        try play(&base, LogScript(Self.size, using: &dice))
        try base.perform(.restart)
        let script = LogScript(Self.size, using: &dice)
        rig.kill()
        var rehearsal = LogPlay(base, on: LogRig(rig))
        try play(&rehearsal, script)
        // One of them is a segment that was dropped but could not be marked so.
        for first in stride(
            from: Trials.isCampaign ? 0 : 4, to: rehearsal.rig.volume.operations,
            by: Trials.stride(21))
        {
            var next = LogPlay(base, on: LogRig(rig))
            try next.rig.start()
            next.rig.volume.edit {
                $0.operations = first..<first + count
                $0.call = call
                $0.code = first % 4 == 0 ? ENOSPC : EIO
            }
            try play(&next, script)
            try next.checkCurrent()
            next.rig.volume.edit { $0 = .init() }
            try goOn(&next)
            try #require(next.wrongs == [], "operation \(first)")
        }
    }

    @Test(
        "While a file cannot be read, nothing wrong is served, and the log continues",
        arguments: Trials.seeds(1...20, long: 2_000))
    func reads(seed: UInt64) throws {
        var dice = SplitMix64(seed: seed)
        let rig = try LogRig(segments: 5, seed: seed)
        var next = LogPlay(rig, names: Self.size.names)
        for round in 0..<4 {
            let start = UInt64.random(in: 0..<1 << 20, using: &dice)
            let end = seed % 3 == 0 ? 1 << 20 : min(1 << 20, start + (64 << 10))
            let name = SegmentFiles.name(Int.random(in: 0..<5, using: &dice))
            rig.volume.edit {
                $0.unreadable = round == 3 ? [:] : [name: seed % 2 == 0 ? 0..<end : start..<end]
            }
            try play(&next, LogScript(Self.size, using: &dice))
            try next.checkCurrent()
            _ = try rig.log().takeRemoved()
            rig.volume.edit { $0 = .init() }
            guard round == 2 else { continue }
            // A lost entry may return, or an older response in its place; the others are unchanged.
            let before = try next.found()
            try rig.restart()
            let after = try next.found()
            let isSame = before.allSatisfy { after[$0.key] == $0.value }
            #expect(isSame, "seed \(seed)")
            try next.checkPossible()
        }
        try goOn(&next)
        #expect(next.wrongs == [], "seed \(seed)")
    }

    @Test("A record that cannot be read is lost alone and can be stored again")
    func oneRecord() throws {
        let rig = try LogRig(segments: 4, seed: 1)
        for number in 0..<5 { try rig.store(Answer(number, version: 1, bytes: 10_000)) }
        let bad = UInt64(DiskFormat.headerBytes + 25_000)
        rig.volume.edit { $0.unreadable[SegmentFiles.name(0)] = bad..<bad + 1 }
        let found = try (0..<5).filter { try rig.find($0) != nil }
        #expect(found == [0, 1, 3, 4])
        let notes = try rig.log().takeRemoved()
        #expect(notes.count == 1)
        #expect(notes.first?.fields["file"]?.contains(SegmentFiles.name(0)) == true)
        #expect(rig.figures[.lostRecords] == 1)
        try rig.store(Answer(2, version: 2, bytes: 10_000))
        #expect(try rig.find(2)?.head == Answer(2, version: 2, bytes: 0).head)
    }

    @Test("A record that was unreadable for a while does not replace a newer one")
    func lostAndFound() throws {
        let rig = try LogRig(segments: 8, seed: 1)
        for number in 1...2 {
            try rig.store(Answer(number, version: 1, bytes: 100))
            try rig.touch(number, count: 3)
        }
        var filler = 10
        while rig.figures[.reinsertedRecords] < 2 {
            filler += 1
            try rig.store(Answer(filler, version: 1, bytes: 300_000))
        }
        // Now both are in the main queue, whose segments are opened after the small queue's.
        for (number, version) in [(1, 2), (2, 2), (1, 3), (2, 3), (2, 4)] {
            try rig.store(Answer(number, version: version, bytes: 400_000))
        }
        for index in 0..<8 {
            rig.volume.edit { $0.unreadable[SegmentFiles.name(index)] = 0..<1 << 20 }
        }
        #expect(try rig.find(1) == nil)
        #expect(try rig.log().takeRemoved().count == 1)
        rig.volume.edit { $0 = .init() }
        try rig.store(Answer(1, version: 4, bytes: 100))
        try rig.restart()
        #expect(try rig.find(1)?.head == Answer(1, version: 4, bytes: 0).head)
    }

    @Test("On a full disk nothing is stored and entries are read; with space it continues")
    func fullDisk() throws {
        let rig = try LogRig(segments: 4, seed: 1)
        try rig.store(Answer(1, version: 1, bytes: 900_000))
        rig.volume.edit {
            $0.operations = 0..<Int.max
            $0.call = "allocate"
            $0.code = ENOSPC
        }
        for version in 2..<12 {
            let failure = #expect(throws: DiskFile.Failure.self) {
                try rig.store(Answer(2, version: version, bytes: 900_000))
            }
            #expect(failure?.code == ENOSPC)
            #expect(try rig.find(1) != nil)
        }
        rig.volume.edit { $0 = .init() }
        for version in 2..<12 {
            let response = Answer(version, version: 1, bytes: 900_000)
            try rig.store(response)
            let isThere = try rig.find(version)?.body == response.body
            #expect(isThere)
        }
        #expect(rig.volume.peakBytes <= rig.capBytes)
    }

    @Test("A record that is not in the page cache is left to a disk thread")
    func notCached() throws {
        let rig = try LogRig(segments: 4, seed: 1)
        try rig.store(Answer(1, version: 1, bytes: 100))
        rig.volume.edit { $0.isCached = false }
        var room = [UInt8](repeating: 0, count: 1 << 16)
        let found = try rig.log().view.readNonblocking(
            Answer.name(1), key: Answer.key(1), buffer: &room)
        guard case .wouldBlock = found else {
            Issue.record("\(found)")
            return
        }
        #expect(try rig.find(1) != nil)
    }
}
