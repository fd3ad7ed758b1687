import Ground
import Origin

/// Somebody who waits for a turn of its loop.
protocol TurnTaker: AnyObject {
    /// May do now what it waited for.
    func turnCame(now: Instant)
}

extension Hall {
    /// True if a request of `holder` that memory cannot answer may go on now; otherwise `taker` is
    /// told when.
    func hasTurn(_ taker: any TurnTaker, of holder: ShareHolder?) -> Bool {
        guard turns.isOpen else {
            turns.line.append(taker, of: holder)
            return false
        }
        let now = SystemClock.now()
        if let due = turns.begin(now: now) { turnAlarm.set(by: due, now: now) }
        return true
    }

    /// A turn begins; gives the instant of the next if that is known to be wanted.
    func turnBegan(_ now: Instant) -> Instant? {
        let takers = turns.next(now: now)
        for taker in takers { taker.turnCame(now: now) }
        return turns.end(takers.count, now: SystemClock.now())
    }
}
