import Synchronization

/// How many connections with peers of one kind may be open, those included that have not said who
/// they are.
final class PeerConnectionLimiter: Sendable {
    private let remaining: Atomic<Int>

    init(count: Int) {
        remaining = Atomic(count)
    }

    /// A place that is free again when nobody holds it; nil if there is none.
    func acquire() -> PeerConnectionPermit? {
        guard remaining.subtract(1, ordering: .relaxed).newValue >= 0 else {
            release()
            return nil
        }
        return PeerConnectionPermit(self)
    }

    fileprivate func release() {
        remaining.add(1, ordering: .relaxed)
    }
}

/// Room for one connection with a peer.
final class PeerConnectionPermit: Sendable {
    private let limiter: PeerConnectionLimiter

    fileprivate init(_ places: PeerConnectionLimiter) {
        self.limiter = places
    }

    deinit {
        limiter.release()
    }
}
