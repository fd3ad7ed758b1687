import Ground
import NIOCore
import Origin

/// Somebody who waits for a turn of its loop.
protocol MissSchedulerWaiter: AnyObject {
    /// May do now what it waited for.
    func turnGranted(now: Instant)
}

/// What of a loop's time goes to requests that memory cannot answer.
///
/// A loop takes in all that has arrived before it looks for more. A thousand such requests at once
/// would keep it for as long as all of them take, and hits that come meanwhile would wait. So many
/// begin in one turn, and the others after the loop has looked for hits.
struct MissScheduler {
    /// Who waits, by client; this machine itself is nil.
    var queue = FairQueue<QuotaHolder?, any MissSchedulerWaiter>()
    /// How many more may begin in the present turn.
    var startsLeft = startsMax

    /// How many may begin in a turn.
    ///
    /// Each takes some 50 µs with what it brings about; with more, 256 clients get fewer answers a
    /// second (13,900 without a limit, 16,000 with this one), and with fewer, 16 clients do.
    static let startsMax = 4
    /// Between two turns; the loop does all that is due before it looks for what has arrived.
    static let pause = Interval(nanoseconds: 20_000)
}

extension EventLoopContext {
    /// True if a request of `holder` that memory cannot answer may go on now; otherwise `taker` is
    /// told when.
    func acquireTurn(_ taker: any MissSchedulerWaiter, of holder: QuotaHolder?) -> Bool {
        guard missScheduler.queue.isEmpty, missScheduler.startsLeft > 0 else {
            missScheduler.queue.append(taker, of: holder)
            return false
        }
        if missScheduler.startsLeft == MissScheduler.startsMax {
            let now = SystemClock.now()
            missTimer.schedule(by: now + MissScheduler.pause, now: now)
        }
        missScheduler.startsLeft -= 1
        return true
    }

    /// A turn begins; gives the instant of the next if that is known to be wanted.
    func turnBegan(_ now: Instant) -> Instant? {
        missScheduler.startsLeft = MissScheduler.startsMax
        while missScheduler.startsLeft > 0, let taker = missScheduler.queue.next() {
            missScheduler.startsLeft -= 1
            taker.turnGranted(now: now)
        }
        return missScheduler.startsLeft == MissScheduler.startsMax
            ? nil : SystemClock.now() + MissScheduler.pause
    }
}

/// Those who wait for a turn of the loop: of each holder one after the other (round robin), so that
/// whoever sends much at once keeps others waiting for one of its requests, not for all.
package struct FairQueue<Holder: Hashable, Element> {
    private var lines: [Holder: CircularBuffer<Element>] = [:]
    /// Holders with somebody in `lines`, the next one first.
    private var order: CircularBuffer<Holder> = []

    package init() {}

    package var isEmpty: Bool { order.isEmpty }

    package mutating func append(_ element: Element, of holder: Holder) {
        if lines[holder] == nil { order.append(holder) }
        lines[holder, default: []].append(element)
    }

    /// Whose turn it is; nil if nobody waits.
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
