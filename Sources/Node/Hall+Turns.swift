import Ground
import Origin

/// Somebody who waits for a turn of its loop.
protocol TurnTaker: AnyObject {
    /// May do now what it waited for.
    func turnCame(now: Instant)
}

/// What of a loop's time goes to requests that memory cannot answer.
///
/// A loop takes in all that has arrived before it looks for more. A thousand such requests at once
/// would keep it for as long as all of them take, and hits that come meanwhile would wait. So many
/// begin in one turn, and the others after the loop has looked for hits.
struct TurnBudget {
    /// Who waits, by client; this machine itself is nil.
    var line = TurnLine<ShareHolder?, any TurnTaker>()
    /// How many more may begin in the present turn.
    var left = startsMax

    /// How many may begin in a turn.
    ///
    /// Each takes some 50 µs with what it brings about; with more, 256 clients get fewer answers a
    /// second (13,900 without a limit, 16,000 with this one), and with fewer, 16 clients do.
    static let startsMax = 4
    /// Between two turns; the loop does all that is due before it looks for what has arrived.
    static let pause = Interval(nanoseconds: 20_000)
}

extension Hall {
    /// True if a request of `holder` that memory cannot answer may go on now; otherwise `taker` is
    /// told when.
    func hasTurn(_ taker: any TurnTaker, of holder: ShareHolder?) -> Bool {
        guard turns.line.isEmpty, turns.left > 0 else {
            turns.line.append(taker, of: holder)
            return false
        }
        if turns.left == TurnBudget.startsMax {
            let now = SystemClock.now()
            turnAlarm.set(by: now + TurnBudget.pause, now: now)
        }
        turns.left -= 1
        return true
    }

    /// A turn begins; gives the instant of the next if that is known to be wanted.
    func turnBegan(_ now: Instant) -> Instant? {
        turns.left = TurnBudget.startsMax
        while turns.left > 0, let taker = turns.line.next() {
            turns.left -= 1
            taker.turnCame(now: now)
        }
        return turns.left == TurnBudget.startsMax ? nil : SystemClock.now() + TurnBudget.pause
    }
}
