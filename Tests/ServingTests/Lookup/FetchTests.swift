import Ground
import HTTPRules
import Serving
import Testing

/// A fetch with one method for each event of a story.
private struct Story {
    var fetch: Fetch
    var effects: [LookupEffect] = []

    init(windowBytes: UInt64 = 100, keptBytesMax: UInt64 = 1_000) {
        fetch = Fetch(
            request: .accepting("jpeg"), windowBytes: windowBytes, keptBytesMax: keptBytesMax,
            patience: .seconds(1))
    }

    mutating func answered(
        kept: Bool, shared: Bool = true, nominated: FieldNames = FieldNames(),
        validity: Fetch.Validity = .valid
    ) {
        fetch.responseHeadReceived(
            .init(isKept: kept, isShared: shared, nominated: nominated, validity: validity),
            effects: &effects)
    }

    mutating func received(_ bytes: Int) { fetch.bodyReceived(bytes, effects: &effects) }
    mutating func ended() { fetch.completed(effects: &effects) }
    mutating func failed() { fetch.failed(effects: &effects) }
    mutating func left(_ id: Fetch.ReaderID) { fetch.readerLeft(id, effects: &effects) }
    mutating func ticked(_ interval: Interval) { fetch.ticked(interval, effects: &effects) }

    /// Reads everything available; returns the number of bytes.
    mutating func takes(_ id: Fetch.ReaderID) -> Int {
        var total = 0
        while case .read(_, let count) = fetch.nextStep(for: id, limit: 1_000_000) {
            fetch.readerAdvanced(id, by: count, effects: &effects)
            total += count
        }
        return total
    }

    /// The effects since the last call, without the wake-ups.
    mutating func takeEffects() -> [LookupEffect] {
        defer { effects = [] }
        return effects.filter { $0 != .wakeReaders }
    }
}

@Suite("One fetch and its readers")
struct FetchTests {
    @Test("Readers that join before the head or in mid-body all read the whole body")
    func everybodyReadsTheWhole() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        let second = story.fetch.readerJoined(nil)
        story.answered(kept: true)
        story.received(300)
        #expect(story.takes(first) == 300)
        #expect(story.fetch.accepts(nil))
        let third = story.fetch.readerJoined(nil)
        story.received(200)
        story.ended()
        #expect(story.takes(first) == 200)
        #expect(story.takes(second) == 500)
        #expect(story.takes(third) == 500)
        #expect(story.fetch.nextStep(for: third, limit: 1) == .finish)
        #expect(story.takeEffects() == [])
    }

    @Test("A fetch without readers is aborted after the time limit")
    func unreadTime() {
        var story = Story()
        story.fetch.limitUnread(time: .seconds(5), bytes: 100)
        let first = story.fetch.readerJoined(nil)
        story.ticked(.seconds(60))
        story.left(first)
        story.ticked(.seconds(4))
        // A reader that joins in time keeps it; when it leaves, the time limit starts again.
        let second = story.fetch.readerJoined(nil)
        story.left(second)
        story.ticked(.seconds(4))
        #expect(story.takeEffects() == [])
        story.ticked(.seconds(1))
        #expect(story.takeEffects() == [.abort])
        #expect(!story.fetch.accepts(nil))
    }

    @Test("Events that arrive after the abort of a fetch are ignored")
    func answeredTooLate() {
        let events: [(inout Story) -> Void] = [
            { $0.answered(kept: true) }, { $0.answered(kept: false) },
            { $0.fetch.storedResponseUsed(isShared: true, effects: &$0.effects) },
            { $0.fetch.validatorMismatched(effects: &$0.effects) },
        ]
        for event in events {
            var story = Story()
            story.fetch.limitUnread(time: .seconds(5), bytes: 100)
            story.left(story.fetch.readerJoined(nil))
            story.ticked(.seconds(5))
            event(&story)
            story.received(10)
            story.ended()
            #expect(story.fetch.phase == .failed && story.takeEffects() == [.abort])
        }
    }

    @Test("Without the unread limit, a fetch runs to its end without readers")
    func unreadPaid() {
        var story = Story()
        story.fetch.limitUnread(time: .seconds(5), bytes: 100)
        let first = story.fetch.readerJoined(nil)
        story.answered(kept: true)
        story.fetch.removeUnreadLimit()
        story.left(first)
        story.received(500)
        story.ticked(.seconds(60))
        #expect(story.takeEffects() == [])
        #expect(story.fetch.phase == .storing)
    }

    @Test("A fetch of a range serves its first reader alone; the others restart together")
    func part() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        let second = story.fetch.readerJoined(nil)
        story.fetch.limitedToPart(effects: &story.effects)
        #expect(!story.fetch.accepts(nil))
        #expect(story.fetch.nextStep(for: first, limit: 1) == .wait)
        #expect(story.fetch.nextStep(for: second, limit: 1) == .restart(isExclusive: false))
        story.answered(kept: false, shared: false)
        #expect(story.fetch.nextStep(for: second, limit: 1) == .restart(isExclusive: false))
        story.received(10)
        #expect(story.takes(first) == 10)
    }

    @Test("While connections are contended, a reader below the least rate is cut off")
    func contended() {
        var story = Story(windowBytes: 100_000)
        let slow = story.fetch.readerJoined(nil)
        let steady = story.fetch.readerJoined(nil)
        story.answered(kept: false)
        story.received(60_000)
        for _ in 1...20 { story.ticked(.seconds(1)) }
        #expect(story.fetch.nextStep(for: slow, limit: 1) == .read(from: 0, bytes: 1))
        for second in 1...5 {
            story.fetch.readerAdvanced(slow, by: 1, effects: &story.effects)
            story.fetch.readerAdvanced(steady, by: 1_100, effects: &story.effects)
            story.fetch.ticked(.seconds(1), isContended: true, effects: &story.effects)
            #expect((story.fetch.nextStep(for: slow, limit: 1) == .abort) == (second == 5))
        }
        #expect(story.fetch.nextStep(for: steady, limit: 1) == .read(from: 5_500, bytes: 1))
        // The fetch ends with its last stalled reader.
        for _ in 1...5 {
            story.fetch.ticked(.seconds(1), isContended: true, effects: &story.effects)
        }
        #expect(story.fetch.nextStep(for: steady, limit: 1) == .abort)
        #expect(story.takeEffects().contains(.abort))
    }

    @Test("A fetch without readers is aborted after the byte limit")
    func unreadBytes() {
        var story = Story()
        story.fetch.limitUnread(time: .seconds(5), bytes: 100)
        let first = story.fetch.readerJoined(nil)
        story.answered(kept: true)
        story.received(500)
        story.left(first)
        story.received(100)
        #expect(story.takeEffects() == [])
        story.received(1)
        #expect(story.takeEffects() == [.abort])
        #expect(story.fetch.phase == .failed)
    }

    @Test("The fetch of a stored body continues when its readers leave")
    func keptFetchGoesOn() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        story.answered(kept: true)
        story.left(first)
        story.received(10)
        story.ended()
        #expect(story.takeEffects() == [])
    }

    @Test("The fetch of a body without readers that is not stored is aborted")
    func unwantedFetchIsBrokenOff() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        story.answered(kept: false)
        #expect(story.takeEffects() == [])
        story.left(first)
        #expect(story.takeEffects() == [.abort])
    }

    @Test("A client that leaves before the head does not abort a body that will be stored")
    func leavingBeforeTheHead() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        story.left(first)
        #expect(story.takeEffects() == [])
        story.answered(kept: true)
        #expect(story.takeEffects() == [])
    }

    @Test("A client that leaves before the head aborts a body that will not be stored")
    func leavingBeforeAHeadThatIsNotKept() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        story.left(first)
        story.answered(kept: false)
        #expect(story.takeEffects() == [.abort])
    }

    @Test("A body that is stored is never paused, however slow its readers are")
    func keptIsNeverHeldBack() {
        var story = Story(windowBytes: 10)
        _ = story.fetch.readerJoined(nil)
        story.answered(kept: true)
        for _ in 0..<20 { story.received(50) }
        #expect(story.takeEffects() == [])
    }

    @Test("A body that is not stored pauses when its only reader is a full window behind")
    func windowHoldsBack() {
        var story = Story(windowBytes: 100)
        let reader = story.fetch.readerJoined(nil)
        story.answered(kept: false)
        story.received(60)
        #expect(story.takeEffects() == [])
        story.received(60)
        #expect(story.takeEffects() == [.updateFlow] && story.fetch.isPaused)
        #expect(story.takes(reader) == 120)
        #expect(story.takeEffects() == [.releasePrefix, .updateFlow] && !story.fetch.isPaused)
        #expect(story.fetch.retainedOffset == 120)
    }

    @Test("A reader that blocks another longer than the patience is cut off; the other continues")
    func slowestIsCut() {
        var story = Story(windowBytes: 100)
        let fast = story.fetch.readerJoined(nil)
        let slow = story.fetch.readerJoined(nil)
        story.answered(kept: false)
        story.received(120)
        #expect(story.takes(fast) == 120)
        #expect(story.takeEffects() == [.updateFlow] && story.fetch.isPaused)
        story.ticked(.milliseconds(600))
        #expect(story.takeEffects() == [])
        story.ticked(.milliseconds(600))
        #expect(story.takeEffects() == [.releasePrefix, .updateFlow] && !story.fetch.isPaused)
        #expect(story.fetch.nextStep(for: slow, limit: 10) == .abort)
        story.received(10)
        #expect(story.takes(fast) == 10)
    }

    @Test("Stalled readers are cut off together, at whatever offset")
    func stalledAreCutTogether() {
        var story = Story(windowBytes: 100)
        let fast = story.fetch.readerJoined(nil)
        let stalled = (0..<10).map { _ in story.fetch.readerJoined(nil) }
        story.answered(kept: false)
        story.received(120)
        for (index, reader) in stalled.enumerated() {
            story.fetch.readerAdvanced(reader, by: 5 * index, effects: &story.effects)
        }
        #expect(story.takes(fast) == 120)
        for _ in 0..<5 { story.ticked(.milliseconds(300)) }
        for reader in stalled { #expect(story.fetch.nextStep(for: reader, limit: 1) == .abort) }
        #expect(!story.fetch.isPaused)
        #expect(story.fetch.nextStep(for: fast, limit: 1) == .wait)
    }

    @Test("A slow reader that is not the slowest is not cut off while it makes progress")
    func movingIsNotBlamed() {
        var story = Story(windowBytes: 100)
        let fast = story.fetch.readerJoined(nil)
        let stalled = story.fetch.readerJoined(nil)
        let moving = story.fetch.readerJoined(nil)
        story.answered(kept: false)
        story.received(120)
        #expect(story.takes(fast) == 120)
        for _ in 0..<4 {
            story.fetch.readerAdvanced(moving, by: 10, effects: &story.effects)
            story.ticked(.milliseconds(300))
        }
        #expect(story.fetch.nextStep(for: stalled, limit: 1) == .abort)
        #expect(story.fetch.nextStep(for: moving, limit: 1) == .read(from: 40, bytes: 1))
    }

    @Test("A sole reader is never cut off: it blocks no other")
    func aloneIsNeverCut() {
        var story = Story(windowBytes: 100)
        let reader = story.fetch.readerJoined(nil)
        story.answered(kept: false)
        story.received(120)
        for _ in 0..<100 { story.ticked(.seconds(1)) }
        #expect(story.takes(reader) == 120)
    }

    @Test("A body beyond the limit is no longer stored, and later readers fetch for themselves")
    func outgrown() {
        var story = Story(windowBytes: 100, keptBytesMax: 500)
        let reader = story.fetch.readerJoined(nil)
        story.answered(kept: true)
        story.received(400)
        #expect(story.takes(reader) == 400)
        #expect(story.takeEffects() == [])
        story.received(200)
        #expect(
            story.takeEffects() == [.stopStoring, .releasePrefix, .updateFlow]
                && story.fetch.isPaused)
        #expect(!story.fetch.accepts(nil))
        #expect(story.takes(reader) == 200)
        #expect(story.takeEffects() == [.releasePrefix, .updateFlow] && !story.fetch.isPaused)
    }

    @Test("A private response goes to the first reader; the others restart exclusively")
    func unshared() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        let second = story.fetch.readerJoined(nil)
        story.answered(kept: false, shared: false)
        story.received(10)
        #expect(story.takes(first) == 10)
        #expect(story.fetch.nextStep(for: second, limit: 10) == .restart(isExclusive: true))
        #expect(!story.fetch.accepts(nil))
    }

    @Test("A reader with another variant restarts and may share with others of its variant")
    func varied() {
        var story = Story()
        let first = story.fetch.readerJoined(.accepting("jpeg"))
        let other = story.fetch.readerJoined(.accepting("webp"))
        let like = story.fetch.readerJoined(.accepting("jpeg"))
        story.answered(kept: true, nominated: FieldNames(["Accept"]))
        #expect(story.fetch.nextStep(for: first, limit: 10) == .wait)
        #expect(story.fetch.nextStep(for: other, limit: 10) == .restart(isExclusive: false))
        #expect(story.fetch.nextStep(for: like, limit: 10) == .wait)
        #expect(!story.fetch.accepts(.accepting("avif")))
        #expect(story.fetch.accepts(.accepting("jpeg")))
    }

    @Test("A response soft-purged in transit goes to the first reader alone")
    func overtaken() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        let second = story.fetch.readerJoined(nil)
        story.answered(kept: true, validity: .mustRevalidate)
        #expect(story.fetch.nextStep(for: first, limit: 10) == .wait)
        #expect(story.fetch.nextStep(for: second, limit: 10) == .restart(isExclusive: false))
        #expect(!story.fetch.accepts(nil))
    }

    @Test("A response purged in transit goes to no reader: all restart", arguments: [true, false])
    func void(isKept: Bool) {
        var story = Story()
        let readers = [story.fetch.readerJoined(nil), story.fetch.readerJoined(nil)]
        story.answered(kept: isKept, validity: .unusable)
        for reader in readers {
            #expect(story.fetch.nextStep(for: reader, limit: 10) == .restart(isExclusive: false))
        }
        #expect(!story.fetch.accepts(nil))
        #expect(story.takeEffects() == (isKept ? [] : [.abort]))
    }

    @Test("A failure reaches every reader, those in mid-body too")
    func failureReachesAll() {
        var story = Story()
        let first = story.fetch.readerJoined(nil)
        story.answered(kept: true)
        story.received(10)
        let second = story.fetch.readerJoined(nil)
        #expect(story.takes(first) == 10)
        story.failed()
        #expect(story.effects.contains(.wakeReaders))
        #expect(story.fetch.nextStep(for: first, limit: 10) == .fail)
        #expect(story.fetch.nextStep(for: second, limit: 10) == .fail)
        #expect(!story.fetch.accepts(nil))
    }

    @Test("Every event that changes a waiting reader's next step wakes the readers")
    func wakes() {
        var story = Story()
        _ = story.fetch.readerJoined(nil)
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
