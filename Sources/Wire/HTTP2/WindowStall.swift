import Ground

/// How long a window of the peer's has been in the way: from the first look that found it used up
/// until ``progressBytesMin`` bytes were framed (RFC 9113 §5.2).
///
/// A peer that opens its window by less at a time is stalling still, and one that opens it while
/// another window is in the way loses nothing: the bytes are framed before it is used up again.
struct WindowStall: Hashable {
    /// Below this many bytes framed a stall goes on.
    static let progressBytesMin = 1024

    /// Nil while there is no stall.
    private(set) var since: Instant?
    private var bytesFramed = 0

    /// The window is used up; a stall that goes on keeps its beginning.
    mutating func begin(_ now: Instant) {
        guard since == nil else { return }
        since = now
        bytesFramed = 0
    }

    mutating func end() {
        since = nil
    }

    /// Takes note of bytes that the window took.
    @inline(__always)
    mutating func recordProgress(_ bytes: Int) {
        guard since != nil else { return }
        bytesFramed += bytes
        if bytesFramed >= Self.progressBytesMin { since = nil }
    }
}
