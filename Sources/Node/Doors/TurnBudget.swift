package import Ground

/// What of a loop's time goes to requests that memory cannot answer.
///
/// A loop takes in all that has arrived before it looks for more. A thousand such requests at once
/// would keep it for as long as all of them take, and hits that come meanwhile would wait. So many
/// begin in one turn, and the others after the loop has looked for hits.
package struct TurnBudget<Holder: Hashable, Element> {
    /// Who waits.
    package var line = TurnLine<Holder, Element>()
    /// How many more may begin in the present turn.
    private var left = Self.startsMax
    /// When the next turn is due; nil if none is wanted.
    private var due: Instant?

    /// How many may begin in a turn.
    ///
    /// Each takes some 50 µs with what it brings about; with more, 256 clients get fewer answers a
    /// second (13,900 without a limit, 16,000 with this one), and with fewer, 16 clients do.
    package static var startsMax: Int { 4 }
    /// Between two turns; the loop does all that is due before it looks for what has arrived.
    package static var pause: Interval { Interval(nanoseconds: 20_000) }
    /// A turn that is later than this begins one request only: what arrives from origins keeps the
    /// loop, and with fewer under way less arrives at once.
    package static var latenessMax: Interval { Interval(nanoseconds: 500_000) }

    package init() {}

    /// True if somebody who has just come may begin, and not only wait.
    package var isOpen: Bool { line.isEmpty && left > 0 }

    /// One begins; gives the instant of the next turn if that has not been asked for.
    package mutating func begin(now: Instant) -> Instant? {
        left -= 1
        guard due == nil else { return nil }
        due = now + Self.pause
        return due
    }

    /// A turn begins; gives those whose turn it is.
    package mutating func next(now: Instant) -> [Element] {
        let isLate = due.map { now - $0 > Self.latenessMax } ?? false
        left = isLate ? 1 : Self.startsMax
        var takers: [Element] = []
        while left > 0, let taker = line.next() {
            left -= 1
            takers.append(taker)
        }
        return takers
    }

    /// A turn is over in which `count` began; gives the instant of the next if one is wanted.
    package mutating func end(_ count: Int, now: Instant) -> Instant? {
        due = count > 0 ? now + Self.pause : nil
        if count == 0 { left = Self.startsMax }
        return due
    }
}
