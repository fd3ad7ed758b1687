import Ground

/// What was said of peers that no connection could be made with, so that it is said once and not
/// with every try.
struct PeerComplaints {
    private var said: [String: (why: String, at: Instant)] = [:]

    /// The same of the same peer is said again after so long.
    private static let interval = Interval.seconds(600)
    /// Peers remembered at most; when there are more, all is said again.
    private static let peersMax = 1_024

    /// True if this is to be said.
    mutating func isNews(_ remote: String, _ why: String, now: Instant) -> Bool {
        if let last = said[remote], last.why == why, now - last.at < Self.interval { return false }
        if said.count >= Self.peersMax { said = [:] }
        said[remote] = (why, now)
        return true
    }

    /// There is a connection with it.
    mutating func mended(_ remote: String) {
        said[remote] = nil
    }
}
