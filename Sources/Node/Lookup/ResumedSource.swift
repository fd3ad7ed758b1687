import Ground
import HTTPRules
import NIOCore
import Serving
import Store
import Wire

/// The rest of a body that a peer has broken off, from another peer or from the origin, if they
/// have the very same answer: a node that dies takes nothing away from the clients of others.
///
/// A second fetch, which nobody else joins, brings the answer from its beginning; what the readers
/// have of it is passed over. It keeps what it brings by itself, so that the first fetch need not.
/// Confined to the loop of its hall.
final class ResumedSource: AnswerSource, FillReader {
    private let driver: LookupDriver
    private let run: FillRun
    private unowned let hall: Hall
    private let name: EntryName
    private let begun: Begun
    private var second: (run: FillRun, reader: Fill.ReaderID)?
    /// The origin is asked by now.
    private var skipsPeers = false
    /// Of the second fetch's answer.
    private var position: UInt64 = 0
    private var receivedBytes: UInt64
    /// The second answer is the first one.
    private var isSame = false
    /// It has reported, or nobody wants to hear.
    private var isOver = false

    /// What the readers were told of the answer.
    struct Begun {
        let facts: EntryFacts
        let head: RenderedHead
        /// Nil if the length was not known.
        let sizeBytes: UInt64?

        /// What tells whether another answer is the same.
        var identity: BrokenAnswer {
            BrokenAnswer(
                entityTag: head.text(facts.entityTag), lastModified: facts.lastModified,
                isStrongDate: facts.flags.contains(.strongDate), sizeBytes: sizeBytes)
        }
    }

    private var watch: Scheduled<Void>?
    private var lastProgress = SystemClock.now()

    /// How long peers may bring nothing: of two nodes with different rings each may wait for the
    /// other.
    private static let patience = Interval.seconds(10)

    init(
        _ driver: LookupDriver, name: EntryName, _ begun: Begun, receivedBytes: UInt64
    ) {
        self.driver = driver
        run = driver.run
        hall = driver.hall
        self.name = name
        self.begun = begun
        self.receivedBytes = receivedBytes
    }

    /// Begins the second fetch, which asks peers or not.
    func begin(_ skipsPeers: Bool) {
        self.skipsPeers = skipsPeers
        position = 0
        isSame = false
        var wish = Lookup.Wish()
        wish.isAlone = true
        wish.isResumption = true
        wish.skipsPeers = skipsPeers
        wish.isForPeer = run.view.isOwner
        let (second, reader) = hall.node.fills.beginAlone(run.query) { [hall, run] in
            FillRun(run.query, on: hall, cause: run.cause, client: run.client, wish: wish)
        }
        self.second = (second, reader)
        if !skipsPeers { lookAgain() }
        hall.start(second, name: name, asksDisk: false, for: nil)
        proceed()
    }

    private func lookAgain() {
        let wait = max(.milliseconds(1), lastProgress + Self.patience - SystemClock.now())
        watch = hall.loop.assumeIsolated().scheduleTask(in: .nanoseconds(wait.nanoseconds)) {
            [weak self] in
            guard let self, !isOver, !self.skipsPeers else { return }
            if run.isPaused { lastProgress = SystemClock.now() }
            guard SystemClock.now() - lastProgress < Self.patience else { return again() }
            lookAgain()
        }
    }

    // MARK: What the run asks for

    func pace() {
        proceed()
    }

    func cancel() {
        leave()
    }

    func waitedForByPeer() {
        guard let second else { return }
        hall.tell(second.run) { $0.waitedForByPeer() }
    }

    // MARK: What the second fetch brings

    func woken(by run: FillRun) {
        proceed()
    }

    private func proceed() {
        while !isOver, !run.isPaused, let (second, reader) = second {
            var slices: [ByteBuffer] = []
            let limit = hall.settings.transferBytesMax
            let step = second.step(reader, limit: limit, on: hall, slices: &slices)
            switch step {
            case .wait: return hall.await(second, for: self)
            case .take(_, let count):
                guard isSame || isTheSame(second) else { return giveUp() }
                lastProgress = SystemClock.now()
                for slice in slices { take(slice) }
                second.advance(reader, by: count)
            case .finish:
                guard isSame || isTheSame(second), position == receivedBytes else {
                    return giveUp()
                }
                return finish()
            case .startOver, .breakOff, .fail: return again()
            }
        }
    }

    private func isTheSame(_ second: FillRun) -> Bool {
        let other: Begun
        switch second.view.known.outcome {
        case .answering(let fill):
            other = Begun(facts: fill.facts, head: fill.head, sizeBytes: fill.sizeBytes)
        case .stored(let resident), .found(let resident):
            other = Begun(
                facts: resident.facts, head: RenderedHead(resident),
                sizeBytes: resident.facts.size)
        case .open, .refused: return false
        }
        isSame = begun.identity.isSame(as: other.identity)
        return isSame
    }

    /// Hands on what the readers do not have yet.
    private func take(_ slice: ByteBuffer) {
        var slice = slice
        let known = min(UInt64(slice.readableBytes), receivedBytes - min(receivedBytes, position))
        position += UInt64(slice.readableBytes)
        slice.moveReaderIndex(forwardBy: Int(known))
        guard slice.readableBytes > 0 else { return }
        receivedBytes += UInt64(slice.readableBytes)
        run.received(slice)
    }

    private func again() {
        leaveSecond()
        driver.lost(canBeResumed: true)
    }

    /// There is another answer now, or none: whoever has nothing of this one begins anew.
    private func giveUp() {
        leave()
        driver.lost()
    }

    private func finish() {
        _ = run.ended(name: nil) { _ in nil }
        leave()
        driver.finish()
    }

    private func leaveSecond() {
        watch?.cancel()
        guard let (second, reader) = second.take() else { return }
        second.leave(reader)
    }

    private func leave() {
        isOver = true
        leaveSecond()
    }
}
