import Ground
import NIOCore
import Store
import Testing
import Tiers

@Suite("Reading a record while its segment is reused")
struct DiskRecordHandleTests {
    private let rig: LogRig
    /// Two responses in a segment that is reclaimed next; the first is accessed often.
    private let large = Answer(1, version: 1, bytes: 600_000)
    private let small = Answer(2, version: 1, bytes: 5_000)
    /// The number of that segment.
    private let segment: Int

    init() throws {
        rig = try LogRig(segments: 6, seed: 5)
        try rig.store(large)
        try rig.store(small)
        try rig.touch(1, count: 5)
        let entry = try #require(rig.log().view.shards.find(Answer.name(1).digest))
        segment = Int(entry.location.segment)
    }

    /// Stores other responses until the segment has been reclaimed and reused.
    private func reuse(_ isKept: Bool) {
        let slots = (try? rig.log().view.slots) ?? []
        let sequence = slots[segment].current?.sequence
        for number in 100..<400 {
            if isKept { try? rig.touch(1, count: 3) }
            _ = try? rig.store(Answer(number, version: 1, bytes: 300_000))
            let now = slots[segment].current?.sequence
            if now != nil, now != sequence { return }
        }
        Issue.record("the segment was never reused")
    }

    @Test("The head is read from the record's new location")
    func head() throws {
        rig.volume.beforeNextRead { reuse(true) }
        let found = try rig.find(1)
        // Compared outside the expectation, which would take minutes to describe a difference.
        let isWhole = found?.body == large.body
        #expect(isWhole)
        #expect(rig.figures[.lostRecords] == 0)
    }

    @Test("A body in progress is read to its end from the record's new location")
    func body() throws {
        let view = try rig.log().view
        var reading = try #require(view.read(Answer.name(1), key: Answer.key(1)))
        let first = view.readChunks(&reading, from: 0, count: 4)
        rig.volume.beforeNextRead { reuse(true) }
        let rest = view.readChunks(&reading, from: 4, count: 100)
        let body = ((first ?? []) + (rest ?? [])).flatMap { Array($0.readableBytesView) }
        let isWhole = body == large.body
        #expect(isWhole)
        #expect(rig.figures[.lostRecords] == 0)
    }

    @Test("The body of a dropped record ends without a report of damage")
    func givenUp() throws {
        let view = try rig.log().view
        var reading = try #require(view.read(Answer.name(1), key: Answer.key(1)))
        rig.volume.beforeNextRead {
            try? rig.log().forget(Answer.name(1))
            reuse(false)
        }
        let rest = view.readChunks(&reading, from: 4, count: 4)
        #expect(rest == nil)
        #expect(rig.figures[.lostRecords] == 0)
    }

    @Test("On an event loop a moved record is found at its new location or not at all")
    func atOnce() throws {
        rig.volume.beforeNextRead { reuse(true) }
        let found = try rig.findAtOnce(2)
        let isWhole = found == nil || found?.body == small.body
        #expect(isWhole)
        #expect(rig.figures[.lostRecords] == 0)
    }

    @Test(
        "A record that fails validation is lost, and no other",
        arguments: [true, false])
    func refused(isAtOnce: Bool) throws {
        let head = small.head
        rig.fault = { $0.head == head ? "it says so" : nil }
        try rig.restart()
        for _ in 0..<2 {
            #expect(try (isAtOnce ? rig.findAtOnce(2) : rig.find(2)) == nil)
            #expect(try (isAtOnce ? rig.findAtOnce(1) : rig.find(1)) != nil)
        }
        #expect(rig.figures[.invalidRecords] == 1)
        #expect(rig.figures[.lostRecords] == 1)
        let notes = try rig.log().takeRemoved()
        guard case .recordLost(_, _, why: "it says so") = try #require(notes.first) else {
            Issue.record("\(notes)")
            return
        }
        #expect(notes.count == 1)
    }
}
