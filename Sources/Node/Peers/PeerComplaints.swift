import Ground

/// What was said of peers that no connection could be made with, so that it is said once and not
/// with every try.
struct PeerWarningLimiter {
    private var logged: [String: (why: String, at: Instant)] = [:]

    /// The same of the same peer is said again after so long.
    private static let interval = Interval.seconds(600)
    /// Peers remembered at most; when there are more, all is said again.
    private static let peersMax = 1_024

    /// True if this is to be said.
    mutating func shouldLog(_ remote: String, _ why: String, now: Instant) -> Bool {
        if let last = logged[remote], last.why == why, now - last.at < Self.interval {
            return false
        }
        if logged.count >= Self.peersMax { logged = [:] }
        logged[remote] = (why, now)
        return true
    }

    /// There is a connection with it.
    mutating func clear(_ remote: String) {
        logged[remote] = nil
    }
}
