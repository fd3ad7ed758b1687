/// The header of a frame (RFC 9113 §4.1).
struct FrameHeader: Hashable {
    /// The size of a header in bytes.
    static let bytesCount = 9

    /// The size of the payload in bytes.
    var length: Int
    var type: UInt8
    var flags: UInt8
    var streamID: Int32
    /// The stream named at the start of the payload: for PRIORITY the dependency, for
    /// PRIORITY_UPDATE the prioritised stream; `nil` for all other types.
    var relatedStream: Int32?

    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let priority: UInt8 = 2
    static let rstStream: UInt8 = 3
    static let settings: UInt8 = 4
    static let ping: UInt8 = 6
    static let windowUpdate: UInt8 = 8
    static let continuation: UInt8 = 9
    static let priorityUpdate: UInt8 = 0x10
    /// END_STREAM of DATA and HEADERS, ACK of SETTINGS and PING.
    static let endStreamOrAck: UInt8 = 0x1
    static let endHeaders: UInt8 = 0x4

    func hasFlag(_ flag: UInt8) -> Bool { flags & flag != 0 }
}

/// Finds frame headers in received bytes before nghttp2 sees them.
///
/// nghttp2 does not report the frames that it ignores, and floods consist of those.
struct FrameScanner {
    /// The result of ``next(_:at:)``.
    enum ScanResult {
        /// A frame whose header begins at `start`; if that is negative, it began in earlier bytes,
        /// and ``bufferedBytes`` go to nghttp2 first.
        case frame(FrameHeader, start: Int)
        /// No more headers; nghttp2 may get the bytes up to `end`, and the rest is withheld.
        case end(Int)
    }

    /// The bytes of the header and, for PRIORITY and PRIORITY_UPDATE, the part of the payload that
    /// is parsed here.
    private var collected: [UInt8] = []
    /// True if the header in ``collected`` has been returned.
    private var isHeaderComplete = false
    private var payloadLeft: Int
    /// The stream of an incomplete header block, after which only CONTINUATION may follow.
    private(set) var openHeaderBlock: Int32?

    private static let streamBytes = 4
    /// The maximum size in bytes of a PRIORITY_UPDATE payload that is parsed; a longer one has more
    /// than a priority.
    private static let updateBytesMax = 68

    /// Creates a scanner; `prefaceBytes` precede the first frame.
    init(prefaceBytes: Int) {
        payloadLeft = prefaceBytes
        collected.reserveCapacity(FrameHeader.bytesCount + Self.updateBytesMax)
    }

    /// The bytes of the frame found last, or those withheld of the next one.
    var bufferedBytes: [UInt8] { collected }

    /// The value of the PRIORITY_UPDATE frame found last; `nil` if it is too long.
    var updateValue: ArraySlice<UInt8>? {
        guard collected.count > FrameHeader.bytesCount, head.length <= Self.updateBytesMax else {
            return nil
        }
        return collected[(FrameHeader.bytesCount + Self.streamBytes)...]
    }

    /// Finds the next frame header from `position`, and moves that past it and the part of the
    /// payload that is parsed here, or to the end of `bytes`.
    mutating func next(_ bytes: Span<UInt8>, at position: inout Int) -> ScanResult {
        if isHeaderComplete {
            collected.removeAll(keepingCapacity: true)
            isHeaderComplete = false
        }
        let skipped = min(payloadLeft, bytes.count - position)
        position += skipped
        payloadLeft -= skipped
        guard payloadLeft == 0 else { return .end(bytes.count) }
        let start = position - collected.count
        while true {
            let needed = bytesNeeded
            if collected.count >= needed { break }
            guard position < bytes.count else { return .end(max(0, start)) }
            let count = min(needed - collected.count, bytes.count - position)
            for index in position..<position + count { collected.append(bytes[index]) }
            position += count
        }
        let head = head
        isHeaderComplete = true
        payloadLeft = FrameHeader.bytesCount + head.length - collected.count
        if head.type == FrameHeader.headers || head.type == FrameHeader.continuation {
            openHeaderBlock = head.hasFlag(FrameHeader.endHeaders) ? nil : head.streamID
        }
        return .frame(head, start: start)
    }

    /// The number of bytes to collect of the current frame, as far as is known: its header, and the
    /// part of its payload that is parsed here.
    private var bytesNeeded: Int {
        guard collected.count >= FrameHeader.bytesCount else { return FrameHeader.bytesCount }
        let head = head
        switch head.type {
        case FrameHeader.priority where head.length == 5:
            return FrameHeader.bytesCount + Self.streamBytes
        case FrameHeader.priorityUpdate where head.length >= Self.streamBytes:
            return FrameHeader.bytesCount + min(head.length, Self.updateBytesMax)
        default: return FrameHeader.bytesCount
        }
    }

    private var head: FrameHeader {
        let length = Int(collected[0]) << 16 | Int(collected[1]) << 8 | Int(collected[2])
        return FrameHeader(
            length: length, type: collected[3], flags: collected[4], streamID: id(at: 5),
            relatedStream: collected.count >= FrameHeader.bytesCount + Self.streamBytes
                ? id(at: FrameHeader.bytesCount) : nil)
    }

    /// Returns the stream id at `offset` of the collected bytes, without the reserved bit.
    private func id(at offset: Int) -> Int32 {
        var id: Int32 = 0
        for index in offset..<offset + 4 { id = id << 8 | Int32(collected[index]) }
        return id & .max
    }
}
