import Synchronization

/// How many connections with peers of one kind may be open, those included that have not said who
/// they are.
final class PeerPlaces: Sendable {
    private let left: Atomic<Int>

    init(count: Int) {
        left = Atomic(count)
    }

    /// A place that is free again when nobody holds it; nil if there is none.
    func take() -> PeerPlace? {
        guard left.subtract(1, ordering: .relaxed).newValue >= 0 else {
            giveBack()
            return nil
        }
        return PeerPlace(self)
    }

    fileprivate func giveBack() {
        left.add(1, ordering: .relaxed)
    }
}

/// Room for one connection with a peer.
final class PeerPlace: Sendable {
    private let places: PeerPlaces

    fileprivate init(_ places: PeerPlaces) {
        self.places = places
    }

    deinit {
        places.giveBack()
    }
}
