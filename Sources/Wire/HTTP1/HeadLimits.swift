/// The limits on a message head; a message beyond a limit is refused.
package struct HeadLimits: Hashable, Sendable {
    /// The maximum size in bytes from the first byte of the first line through the empty line's CR
    /// LF; 431 beyond it.
    package var headBytesMax: Int
    /// The maximum size of the request target in bytes; 414 beyond it.
    ///
    /// The default allows a URL of 8 KiB and 1 KiB around it.
    package var targetBytesMax: Int
    /// The maximum number of field lines; 431 beyond it.
    package var fieldsMax: Int

    /// Creates limits from their parts.
    package init(
        headBytesMax: Int = 32 * 1024, targetBytesMax: Int = 9 * 1024, fieldsMax: Int = 100
    ) {
        self.headBytesMax = headBytesMax
        self.targetBytesMax = targetBytesMax
        self.fieldsMax = fieldsMax
    }

    /// The maximum size in bytes of a request line without its target: method, version, spaces and
    /// line end.
    static let requestLineOverheadBytes = 64
}

/// The progress of a parser in an incomplete head, so that no byte is searched twice.
///
/// Complete lines are parsed once. For an incomplete line only `scanned` is kept: the bytes before
/// it contain no control byte but tab.
struct HeadProgress {
    /// The offset of the message in the caller's span; negative between messages.
    var base = -1
    /// The offset of the first incomplete line.
    var lineStart = 0
    /// The offset before which the incomplete line has no control byte but tab.
    var scanned = 0
    /// True once the request line or status line has been parsed.
    var hasFirstLine = false

    /// Returns false if the message at `start` must be parsed from its first byte.
    ///
    /// A caller that moved the bytes restarts, because offsets count from the beginning of the
    /// span.
    @inline(__always)
    func canResume(from start: Int, end: Int) -> Bool {
        base == start && scanned <= end
    }

    /// Scans the incomplete line; returns true if it may be complete now, or contains a control
    /// byte that makes it invalid.
    mutating func scanForLineEnd(_ bytes: Span<UInt8>, end: Int) -> Bool {
        scanned = bytes.firstControl(from: scanned, end: end)
        return scanned < end
            && !(scanned == end - 1 && bytes[scanned] == Byte.carriageReturn)
    }
}
