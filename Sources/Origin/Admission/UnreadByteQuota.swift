package import Ground

/// A per-client limit on the bytes per minute that are requested from origins and read by no
/// client.
///
/// Such bytes arise when a range request fetches the whole representation, and when clients
/// disconnect. The last amount consumed may exceed the limit; only later ones are refused.
///
/// Bounded: beyond `clientsMax` clients within a minute, further clients share the budget of
/// requests without a client.
package struct UnreadByteQuota: Sendable {
    /// Maximum number of bytes for each client within ``window``.
    package var bytesMax: UInt64

    /// The length of the window.
    package static let window = Interval.seconds(60)
    private let clientsMax: Int
    /// The start of the current window; `nil` before the first byte.
    private var windowStart: Instant?
    /// Bytes consumed by client; under `nil`, those without a client, such as by this node itself.
    private var consumed: [QuotaHolder?: UInt64] = [:]

    /// Creates a quota; `clientsMax` is the number of clients counted separately.
    package init(bytesMax: UInt64, clientsMax: Int = 16_384) {
        self.bytesMax = bytesMax
        self.clientsMax = clientsMax
    }

    /// Returns true if `client` may consume more.
    package func hasRemaining(for client: QuotaHolder?, now: Instant) -> Bool {
        (isWindowOver(now) ? 0 : consumed[holder(client), default: 0]) < bytesMax
    }

    /// Consumes `bytes` for `client`.
    ///
    /// - Returns: false, with nothing consumed, if `bytes` is not 0 and the client has none left.
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

    /// Returns true if the current window is over.
    private func isWindowOver(_ now: Instant) -> Bool {
        windowStart.map { now - $0 >= Self.window } ?? true
    }

    /// Returns whom bytes are charged to: the client, or `nil` if too many other clients are
    /// counted.
    private func holder(_ client: QuotaHolder?) -> QuotaHolder? {
        consumed[client] == nil && consumed.count >= clientsMax ? nil : client
    }
}
