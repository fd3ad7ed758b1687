package import Ground

/// How many bytes origins are asked for, within a minute, that no client reads: by the client on
/// whose behalf they are.
///
/// They come of parts of wholes, and of clients that leave. A client that has taken as much as
/// there is for it may have exceeded it by the last that it took.
///
/// Bounded: where there are too many clients within a minute, those that come last share what
/// requests of no client have.
package struct UnreadByteQuota: Sendable {
    /// For each client.
    package var bytesMax: UInt64

    package static let window = Interval.seconds(60)
    private let clientsMax: Int
    /// When the minute began; nil before the first byte.
    private var windowStart: Instant?
    /// Under nil what is taken for no client: by this machine itself.
    private var consumed: [QuotaHolder?: UInt64] = [:]

    package init(bytesMax: UInt64, clientsMax: Int = 16_384) {
        self.bytesMax = bytesMax
        self.clientsMax = clientsMax
    }

    /// True if `client` may take more.
    package func hasRemaining(for client: QuotaHolder?, now: Instant) -> Bool {
        (isWindowOver(now) ? 0 : consumed[holder(client), default: 0]) < bytesMax
    }

    /// Takes `bytes` for `client`; false, and nothing is taken, if it has none left
    /// and wants some.
    package mutating func consume(_ bytes: UInt64, for client: QuotaHolder?, now: Instant) -> Bool {
        guard bytes > 0 else { return true }
        guard hasRemaining(for: client, now: now) else { return false }
        if isWindowOver(now) {
            windowStart = now
            consumed.removeAll(keepingCapacity: true)
        }
        let holder = holder(client)
        let (sum, isOver) = consumed[holder, default: 0].addingReportingOverflow(bytes)
        consumed[holder] = isOver ? .max : sum
        return true
    }

    /// The minute of what was taken is over.
    private func isWindowOver(_ now: Instant) -> Bool {
        windowStart.map { now - $0 >= Self.window } ?? true
    }

    private func holder(_ client: QuotaHolder?) -> QuotaHolder? {
        consumed[client] == nil && consumed.count >= clientsMax ? nil : client
    }
}
