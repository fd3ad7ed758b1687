import Ground
import HTTPRules
import Serving
import Testing

/// Verbs for a fill whose story is told line by line.
private struct Story {
    var fill: Fetch
    var effects: [LookupEffect] = []

    init(windowBytes: UInt64 = 100, keptBytesMax: UInt64 = 1_000) {
        fill = Fetch(
            request: .accepting("jpeg"), windowBytes: windowBytes, keptBytesMax: keptBytesMax,
            patience: .seconds(1))
    }

    mutating func answered(
        kept: Bool, shared: Bool = true, nominated: FieldNames = FieldNames(),
        standing: Fetch.Validity = .valid
    ) {
        fill.responseHeadReceived(
            .init(isKept: kept, isShared: shared, nominated: nominated, standing: standing),
            effects: &effects)
    }

    mutating func received(_ bytes: Int) { fill.bodyReceived(bytes, effects: &effects) }
    mutating func ended() { fill.completed(effects: &effects) }
    mutating func failed() { fill.failed(effects: &effects) }
    mutating func left(_ id: Fetch.ReaderID) { fill.readerLeft(id, effects: &effects) }
    mutating func ticked(_ interval: Interval) { fill.ticked(interval, effects: &effects) }

    /// Takes everything there is.
    mutating func takes(_ id: Fetch.ReaderID) -> Int {
        var total = 0
        while case .read(_, let count) = fill.nextStep(for: id, limit: 1_000_000) {
            fill.readerAdvanced(id, by: count, effects: &effects)
            total += count
        }
        return total
    }

    /// The effects since the last call, without the wake-ups.
    mutating func deeds() -> [LookupEffect] {
        defer { effects = [] }
        return effects.filter { $0 != .wakeReaders }
    }
}

@Suite("One fetch and everybody who waits for it")
struct FetchTests {
    @Test(
        "whoever joins before the head reads the whole body, and so does who joins in its middle"
    )
    func everybodyReadsTheWhole() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        let second = story.fill.readerJoined(nil)
        story.answered(kept: true)
        story.received(300)
        #expect(story.takes(first) == 300)
        #expect(story.fill.accepts(nil))
        let third = story.fill.readerJoined(nil)
        story.received(200)
        story.ended()
        #expect(story.takes(first) == 200)
        #expect(story.takes(second) == 500)
        #expect(story.takes(third) == 500)
        #expect(story.fill.nextStep(for: third, limit: 1) == .finish)
        #expect(story.deeds() == [])
    }

    @Test("a fetch that nobody waits for any more is given up after its time")
    func unreadTime() {
        var story = Story()
        story.fill.limitUnread(time: .seconds(5), bytes: 100)
        let first = story.fill.readerJoined(nil)
        story.ticked(.seconds(60))
        story.left(first)
        story.ticked(.seconds(4))
        // Who comes in time finds it, and it has its whole time after that.
        let second = story.fill.readerJoined(nil)
        story.left(second)
        story.ticked(.seconds(4))
        #expect(story.deeds() == [])
        story.ticked(.seconds(1))
        #expect(story.deeds() == [.abort])
        #expect(!story.fill.accepts(nil))
    }

    @Test("what comes for a fetch that was given up, before whoever asks has heard of it, is lost")
    func answeredTooLate() {
        let events: [(inout Story) -> Void] = [
            { $0.answered(kept: true) }, { $0.answered(kept: false) },
            { $0.fill.storedResponseUsed(isShared: true, effects: &$0.effects) },
            { $0.fill.validatorMismatched(effects: &$0.effects) },
        ]
        for event in events {
            var story = Story()
            story.fill.limitUnread(time: .seconds(5), bytes: 100)
            story.left(story.fill.readerJoined(nil))
            story.ticked(.seconds(5))
            event(&story)
            story.received(10)
            story.ended()
            #expect(story.fill.phase == .failed && story.deeds() == [.abort])
        }
    }

    @Test("what somebody answers for goes on to its end without readers")
    func unreadPaid() {
        var story = Story()
        story.fill.limitUnread(time: .seconds(5), bytes: 100)
        let first = story.fill.readerJoined(nil)
        story.answered(kept: true)
        story.fill.removeUnreadLimit()
        story.left(first)
        story.received(500)
        story.ticked(.seconds(60))
        #expect(story.deeds() == [])
        #expect(story.fill.phase == .storing)
    }

    @Test("a part is asked for the first reader alone, and all others begin anew together")
    func part() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        let second = story.fill.readerJoined(nil)
        story.fill.limitedToPart(effects: &story.effects)
        #expect(!story.fill.accepts(nil))
        #expect(story.fill.nextStep(for: first, limit: 1) == .wait)
        #expect(story.fill.nextStep(for: second, limit: 1) == .restart(isExclusive: false))
        story.answered(kept: false, shared: false)
        #expect(story.fill.nextStep(for: second, limit: 1) == .restart(isExclusive: false))
        story.received(10)
        #expect(story.takes(first) == 10)
    }

    @Test("a reader that takes next to nothing is cut while others wait for the origin")
    func contended() {
        var story = Story(windowBytes: 100_000)
        let slow = story.fill.readerJoined(nil)
        let steady = story.fill.readerJoined(nil)
        story.answered(kept: false)
        story.received(60_000)
        for _ in 1...20 { story.ticked(.seconds(1)) }
        #expect(story.fill.nextStep(for: slow, limit: 1) == .read(from: 0, bytes: 1))
        for second in 1...5 {
            story.fill.readerAdvanced(slow, by: 1, effects: &story.effects)
            story.fill.readerAdvanced(steady, by: 1_100, effects: &story.effects)
            story.fill.ticked(.seconds(1), isContended: true, effects: &story.effects)
            #expect((story.fill.nextStep(for: slow, limit: 1) == .abort) == (second == 5))
        }
        #expect(story.fill.nextStep(for: steady, limit: 1) == .read(from: 5_500, bytes: 1))
        // The last one that stands still takes the fetch with it.
        for _ in 1...5 {
            story.fill.ticked(.seconds(1), isContended: true, effects: &story.effects)
        }
        #expect(story.fill.nextStep(for: steady, limit: 1) == .abort)
        #expect(story.deeds().contains(.abort))
    }

    @Test("a fetch that nobody waits for any more is given up after so many bytes")
    func unreadBytes() {
        var story = Story()
        story.fill.limitUnread(time: .seconds(5), bytes: 100)
        let first = story.fill.readerJoined(nil)
        story.answered(kept: true)
        story.received(500)
        story.left(first)
        story.received(100)
        #expect(story.deeds() == [])
        story.received(1)
        #expect(story.deeds() == [.abort])
        #expect(story.fill.phase == .failed)
    }

    @Test(
        "the fetch of a body that is kept goes on when its first client leaves, and when all have"
    )
    func keptFetchGoesOn() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        story.answered(kept: true)
        story.left(first)
        story.received(10)
        story.ended()
        #expect(story.deeds() == [])
    }

    @Test("the fetch of a body that nobody reads and nobody keeps is broken off")
    func unwantedFetchIsBrokenOff() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        story.answered(kept: false)
        #expect(story.deeds() == [])
        story.left(first)
        #expect(story.deeds() == [.abort])
    }

    @Test("a client that left while the origin was silent does not stop a body that will be kept")
    func leavingBeforeTheHead() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        story.left(first)
        #expect(story.deeds() == [])
        story.answered(kept: true)
        #expect(story.deeds() == [])
    }

    @Test("a client that left while the origin was silent stops a body that will not be kept")
    func leavingBeforeAHeadThatIsNotKept() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        story.left(first)
        story.answered(kept: false)
        #expect(story.deeds() == [.abort])
    }

    @Test("a body that is kept is never held back, however slow its readers are")
    func keptIsNeverHeldBack() {
        var story = Story(windowBytes: 10)
        _ = story.fill.readerJoined(nil)
        story.answered(kept: true)
        for _ in 0..<20 { story.received(50) }
        #expect(story.deeds() == [])
    }

    @Test("a body that is not kept waits for its only reader when the window is full")
    func windowHoldsBack() {
        var story = Story(windowBytes: 100)
        let reader = story.fill.readerJoined(nil)
        story.answered(kept: false)
        story.received(60)
        #expect(story.deeds() == [])
        story.received(60)
        #expect(story.deeds() == [.updateFlow] && story.fill.isPaused)
        #expect(story.takes(reader) == 120)
        #expect(story.deeds() == [.releasePrefix, .updateFlow] && !story.fill.isPaused)
        #expect(story.fill.retainedOffset == 120)
    }

    @Test(
        "a reader that holds up another longer than patience allows is cut, and the other goes on")
    func slowestIsCut() {
        var story = Story(windowBytes: 100)
        let fast = story.fill.readerJoined(nil)
        let slow = story.fill.readerJoined(nil)
        story.answered(kept: false)
        story.received(120)
        #expect(story.takes(fast) == 120)
        #expect(story.deeds() == [.updateFlow] && story.fill.isPaused)
        story.ticked(.milliseconds(600))
        #expect(story.deeds() == [])
        story.ticked(.milliseconds(600))
        #expect(story.deeds() == [.releasePrefix, .updateFlow] && !story.fill.isPaused)
        #expect(story.fill.nextStep(for: slow, limit: 10) == .abort)
        story.received(10)
        #expect(story.takes(fast) == 10)
    }

    @Test("readers that stand still are cut together, wherever they stand")
    func stalledAreCutTogether() {
        var story = Story(windowBytes: 100)
        let fast = story.fill.readerJoined(nil)
        let stalled = (0..<10).map { _ in story.fill.readerJoined(nil) }
        story.answered(kept: false)
        story.received(120)
        for (index, reader) in stalled.enumerated() {
            story.fill.readerAdvanced(reader, by: 5 * index, effects: &story.effects)
        }
        #expect(story.takes(fast) == 120)
        for _ in 0..<5 { story.ticked(.milliseconds(300)) }
        for reader in stalled { #expect(story.fill.nextStep(for: reader, limit: 1) == .abort) }
        #expect(!story.fill.isPaused)
        #expect(story.fill.nextStep(for: fast, limit: 1) == .wait)
    }

    @Test("a slow reader that is not the slowest is not blamed while it moves")
    func movingIsNotBlamed() {
        var story = Story(windowBytes: 100)
        let fast = story.fill.readerJoined(nil)
        let stalled = story.fill.readerJoined(nil)
        let moving = story.fill.readerJoined(nil)
        story.answered(kept: false)
        story.received(120)
        #expect(story.takes(fast) == 120)
        for _ in 0..<4 {
            story.fill.readerAdvanced(moving, by: 10, effects: &story.effects)
            story.ticked(.milliseconds(300))
        }
        #expect(story.fill.nextStep(for: stalled, limit: 1) == .abort)
        #expect(story.fill.nextStep(for: moving, limit: 1) == .read(from: 40, bytes: 1))
    }

    @Test("a reader that is alone is never cut: it holds up nobody")
    func aloneIsNeverCut() {
        var story = Story(windowBytes: 100)
        let reader = story.fill.readerJoined(nil)
        story.answered(kept: false)
        story.received(120)
        for _ in 0..<100 { story.ticked(.seconds(1)) }
        #expect(story.takes(reader) == 120)
    }

    @Test(
        "a body that outgrows the limit is passed on instead, and late-comers fetch for themselves")
    func outgrown() {
        var story = Story(windowBytes: 100, keptBytesMax: 500)
        let reader = story.fill.readerJoined(nil)
        story.answered(kept: true)
        story.received(400)
        #expect(story.takes(reader) == 400)
        #expect(story.deeds() == [])
        story.received(200)
        #expect(
            story.deeds() == [.stopStoring, .releasePrefix, .updateFlow] && story.fill.isPaused)
        #expect(!story.fill.accepts(nil))
        #expect(story.takes(reader) == 200)
        #expect(story.deeds() == [.releasePrefix, .updateFlow] && !story.fill.isPaused)
    }

    @Test(
        "an answer that may not be shared goes to the request that caused it; the others ask alone")
    func unshared() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        let second = story.fill.readerJoined(nil)
        story.answered(kept: false, shared: false)
        story.received(10)
        #expect(story.takes(first) == 10)
        #expect(story.fill.nextStep(for: second, limit: 10) == .restart(isExclusive: true))
        #expect(!story.fill.accepts(nil))
    }

    @Test("a waiter that Vary tells apart starts over and may join others of its kind")
    func varied() {
        var story = Story()
        let first = story.fill.readerJoined(.accepting("jpeg"))
        let other = story.fill.readerJoined(.accepting("webp"))
        let like = story.fill.readerJoined(.accepting("jpeg"))
        story.answered(kept: true, nominated: FieldNames(["Accept"]))
        #expect(story.fill.nextStep(for: first, limit: 10) == .wait)
        #expect(story.fill.nextStep(for: other, limit: 10) == .restart(isExclusive: false))
        #expect(story.fill.nextStep(for: like, limit: 10) == .wait)
        #expect(!story.fill.accepts(.accepting("avif")))
        #expect(story.fill.accepts(.accepting("jpeg")))
    }

    @Test("what was to be validated meanwhile is for the one who caused the fetch, and nobody else")
    func overtaken() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        let second = story.fill.readerJoined(nil)
        story.answered(kept: true, standing: .mustRevalidate)
        #expect(story.fill.nextStep(for: first, limit: 10) == .wait)
        #expect(story.fill.nextStep(for: second, limit: 10) == .restart(isExclusive: false))
        #expect(!story.fill.accepts(nil))
    }

    @Test("what was purged meanwhile is for nobody: all begin anew", arguments: [true, false])
    func void(isKept: Bool) {
        var story = Story()
        let readers = [story.fill.readerJoined(nil), story.fill.readerJoined(nil)]
        story.answered(kept: isKept, standing: .unusable)
        for reader in readers {
            #expect(story.fill.nextStep(for: reader, limit: 10) == .restart(isExclusive: false))
        }
        #expect(!story.fill.accepts(nil))
        #expect(story.deeds() == (isKept ? [] : [.abort]))
    }

    @Test("a failure reaches every waiter, those in mid-body too")
    func failureReachesAll() {
        var story = Story()
        let first = story.fill.readerJoined(nil)
        story.answered(kept: true)
        story.received(10)
        let second = story.fill.readerJoined(nil)
        #expect(story.takes(first) == 10)
        story.failed()
        #expect(story.effects.contains(.wakeReaders))
        #expect(story.fill.nextStep(for: first, limit: 10) == .fail)
        #expect(story.fill.nextStep(for: second, limit: 10) == .fail)
        #expect(!story.fill.accepts(nil))
    }

    @Test("every event that changes what a waiting reader would be told wakes the readers")
    func wakes() {
        var story = Story()
        _ = story.fill.readerJoined(nil)
        story.answered(kept: true)
        #expect(story.effects == [.wakeReaders])
        story.effects = []
        story.received(5)
        #expect(story.effects == [.wakeReaders])
        story.effects = []
        story.ended()
        #expect(story.effects == [.wakeReaders])
    }
}
