package import Ground

/// How old an answer was when it came, and how long it is fresh (RFC 9111 §4.2).
package struct Freshness: Hashable, Sendable {
    /// The instant at which its age was zero.
    package var bornAt: Instant
    /// The freshness lifetime; never negative.
    package var lifetime: Interval

    /// The first instant at which the answer is no longer fresh.
    package var freshUntil: Instant { bornAt + lifetime }

    /// When and by which clocks an answer was received.
    package struct Receipt: Hashable, Sendable {
        /// The request was sent.
        package var requestedAt: Instant
        /// The head of the answer had come.
        package var receivedAt: Instant
        /// The same moment as `receivedAt`, to compare with the origin's dates.
        package var receivedWall: WallTime

        package init(requestedAt: Instant, receivedAt: Instant, receivedWall: WallTime) {
            self.requestedAt = requestedAt
            self.receivedAt = receivedAt
            self.receivedWall = receivedWall
        }
    }

    /// Age and lifetime of an answer; `defaultTTL` counts only where the origin gave no explicit
    /// freshness.
    ///
    /// Of Age and Expires the first line counts, of a list in Age its first member (RFC 9111 §5.1,
    /// §4.2.1). An Expires that is no date is in the past (RFC 9111 §5.3).
    package init(
        _ head: AnswerHead, control: CacheControl, receipt: Receipt, defaultTTL: Interval
    ) {
        let date = Self.time(head, .date, receipt)
        bornAt = Self.bornAt(age: Self.age(head), date: date, receipt: receipt)
        if let sMaxAge = control.sMaxAge {
            lifetime = sMaxAge
        } else if let maxAge = control.maxAge {
            lifetime = maxAge
        } else if head.first(.expires) != nil {
            let expires = Self.time(head, .expires, receipt)
            let from = (date ?? receipt.receivedWall).seconds
            lifetime = expires.map { Self.interval($0.seconds - from) } ?? .zero
        } else {
            lifetime = max(.zero, defaultTTL)
        }
    }

    /// The time of receipt less the corrected initial age (RFC 9111 §4.2.3).
    package static func bornAt(age: Interval?, date: WallTime?, receipt: Receipt) -> Instant {
        let apparent = date.map { interval(receipt.receivedWall.seconds - $0.seconds) } ?? .zero
        let delay = max(.zero, receipt.receivedAt - receipt.requestedAt)
        return receipt.receivedAt - max(apparent, (age ?? .zero) + delay)
    }

    /// The date in the first line of this name; nil if there is none or it cannot be read.
    package static func time(
        _ head: AnswerHead, _ name: FieldName, _ receipt: Receipt
    ) -> WallTime? {
        guard let value = head.first(name) else { return nil }
        return HTTPDate.parse(head.bytes.span, at: value.range, now: receipt.receivedWall)
    }

    /// The first member of the first Age line; nil if there is none or it is no number (RFC 9111
    /// §5.1).
    private static func age(_ head: AnswerHead) -> Interval? {
        guard let value = head.first(.age) else { return nil }
        let bytes = head.bytes.span
        let end = FieldSyntax.find(UInt8(ascii: ","), in: bytes, at: value.range)
        let first = FieldSyntax.trimmed(bytes, at: value.range.lowerBound..<end)
        return DeltaSeconds.parse(bytes, at: first)
    }

    /// Seconds from 0 to the greatest number that counts (RFC 9111 §1.2.2).
    private static func interval(_ seconds: Int64) -> Interval {
        .seconds(min(max(0, seconds), DeltaSeconds.max))
    }
}
