/// How large a message head may be; past a limit the message is refused, whatever it says.
package struct HeadLimits: Hashable, Sendable {
    /// Bytes from the first byte of the first line to the empty line and its CR LF; 431 past it.
    package var headBytesMax: Int
    /// Bytes of the request target; 414 past it.
    ///
    /// The default leaves 1 KiB around a URL of 8 KiB.
    package var targetBytesMax: Int
    /// Field lines; 431 past it.
    package var fieldsMax: Int

    package init(
        headBytesMax: Int = 32 * 1024, targetBytesMax: Int = 9 * 1024, fieldsMax: Int = 100
    ) {
        self.headBytesMax = headBytesMax
        self.targetBytesMax = targetBytesMax
        self.fieldsMax = fieldsMax
    }

    /// What a request line may hold beside its target: method, version, spaces and line end.
    static let requestLineOverheadBytes = 64
}

/// How far a parser came in a head that has not arrived in full, so that no byte is searched twice.
///
/// Lines are read once, when their end is there; of the line without an end only `scanned` is
/// remembered, up to which it holds no control byte but tab.
struct HeadProgress {
    /// Where the message begins in the caller's span; negative between messages.
    var base = -1
    /// Where the first line without an end begins.
    var lineStart = 0
    var scanned = 0
    /// True once the request line or status line has been read.
    var hasFirstLine = false

    /// False if the message that begins at `start` has to be read from its first byte.
    ///
    /// A caller that moved the bytes starts anew: offsets are counted from the span's beginning.
    @inline(__always)
    func canResume(from start: Int, end: Int) -> Bool {
        base == start && scanned <= end
    }

    /// True if the unfinished line may be ended now, or holds a byte that ends the wait for its
    /// end.
    mutating func scanForLineEnd(_ bytes: Span<UInt8>, end: Int) -> Bool {
        scanned = bytes.firstControl(from: scanned, end: end)
        return scanned < end
            && !(scanned == end - 1 && bytes[scanned] == Byte.carriageReturn)
    }
}
