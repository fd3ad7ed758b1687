/// The streams that were closed last, which nghttp2 forgets: frames for them are errors if the peer
/// ended or reset the stream, and ignored if this end reset it (RFC 9113 §5.1).
struct ClosedStreams {
    enum ClosedState {
        /// The peer may not know yet that the stream was reset, refused or ignored.
        case ignored
        /// The peer knew that the stream was closed.
        case ended
        /// The peer skipped the id; it counts as closed (RFC 9113 §5.1.1).
        case skipped
    }

    /// The highest id that the peer has used.
    private(set) var last: Int32 = 0
    /// Each id doubled, plus 1 if its stream ended; by half the id, modulo the count.
    private var entries = [UInt32](repeating: 0, count: 256)

    /// The peer used `id`, which is above all before.
    mutating func streamOpened(_ id: Int32) {
        last = id
        entries[slot(id)] = UInt32(id) << 1
    }

    /// The stream was closed by both ends, or reset by the peer.
    mutating func streamEnded(_ id: Int32) {
        guard entries[slot(id)] >> 1 == UInt32(id) else { return }
        entries[slot(id)] |= 1
    }

    /// What is known of `id`, which is not above ``last`` and whose stream is not open.
    func state(_ id: Int32) -> ClosedState {
        let mark = entries[slot(id)]
        if mark >> 1 == UInt32(id) { return mark & 1 == 1 ? .ended : .ignored }
        // Of streams so long ago nothing is known any more.
        return mark >> 1 > UInt32(id) ? .ignored : .skipped
    }

    private func slot(_ id: Int32) -> Int { Int(id >> 1) & 255 }
}
