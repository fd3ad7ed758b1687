import Ground
import NIOCore
import Origin
import Platform

/// A request that waits for its turn on an event loop.
protocol MissSchedulerWaiter: AnyObject {
    /// Continues the work that waited.
    func turnGranted(now: Instant)
}

/// Limit on the requests that memory cannot serve and that one turn of a loop starts.
///
/// A loop processes everything that has arrived before it polls for more. A thousand such requests
/// at once would block it until all are started, and hits that arrive meanwhile would wait. So a
/// turn starts a few of them, and the others follow after the loop has polled for hits.
///
/// Confined to its event loop.
final class MissScheduler {
    /// Waiting requests by quota holder; those without one share the key `nil`.
    var queue = FairQueue<QuotaHolder?, any MissSchedulerWaiter>()
    /// Requests that may still start in the current turn.
    private var startsLeft = startsMax
    /// Timer of the next turn, scheduled while one is required.
    private let timer: DeadlineTimer

    /// Maximum number of requests started in a turn.
    ///
    /// Each costs some 50 µs with its consequences. Higher limits lower the throughput of 256
    /// clients (13,900 responses per second without a limit, 16,000 with this one); lower limits
    /// lower that of 16 clients.
    private static let startsMax = 4
    /// Pause between two turns; the loop processes everything due before it polls.
    private static let pause = Interval(nanoseconds: 20_000)

    /// Creates the scheduler of `loop`.
    init(on loop: any EventLoop) {
        timer = DeadlineTimer(on: loop)
    }

    /// Enables the turns.
    func start() {
        timer.start { [unowned self] in turnBegan($0) }
    }

    /// Ends the turns; requests that wait remain in the queue.
    func stop() {
        timer.stop()
    }

    /// Returns true if a request of `holder` that memory cannot serve may start now; otherwise
    /// `taker` is queued for ``MissSchedulerWaiter/turnGranted(now:)``.
    func acquireTurn(_ taker: any MissSchedulerWaiter, of holder: QuotaHolder?) -> Bool {
        guard queue.isEmpty, startsLeft > 0 else {
            queue.append(taker, of: holder)
            return false
        }
        if startsLeft == Self.startsMax {
            let now = SystemClock.now()
            timer.schedule(by: now + Self.pause, now: now)
        }
        startsLeft -= 1
        return true
    }

    /// Begins a turn and starts waiting requests; returns the instant of the next turn, or `nil` if
    /// none was waiting.
    private func turnBegan(_ now: Instant) -> Instant? {
        startsLeft = Self.startsMax
        while startsLeft > 0, let taker = queue.next() {
            startsLeft -= 1
            taker.turnGranted(now: now)
        }
        return startsLeft == Self.startsMax ? nil : SystemClock.now() + Self.pause
    }
}

/// A round-robin queue over holders: a holder that sends many requests at once delays each of the
/// others by one request, not by all.
package struct FairQueue<Holder: Hashable, Element> {
    /// Waiting elements of each holder, in order of arrival; no line is empty.
    private var lines: [Holder: CircularBuffer<Element>] = [:]
    /// Holders with waiting elements, the next one first.
    private var order: CircularBuffer<Holder> = []

    /// Creates an empty queue.
    package init() {}

    /// True if nothing waits.
    package var isEmpty: Bool { order.isEmpty }

    /// Adds an element at the end of the line of `holder`.
    package mutating func append(_ element: Element, of holder: Holder) {
        if lines[holder] == nil { order.append(holder) }
        lines[holder, default: []].append(element)
    }

    /// Removes and returns the next element; `nil` if the queue is empty.
    package mutating func next() -> Element? {
        guard let holder = order.popFirst(), let element = lines[holder]?.popFirst() else {
            return nil
        }
        if lines[holder]?.isEmpty == true {
            lines[holder] = nil
        } else {
            order.append(holder)
        }
        return element
    }
}
