/// The head of a frame (RFC 9113 §4.1).
struct FrameHeader: Hashable {
    /// Bytes of the payload.
    var length: Int
    var type: UInt8
    var flags: UInt8
    var streamID: Int32
    /// The stream that the payload begins with: of PRIORITY the one it is to depend on, of
    /// PRIORITY_UPDATE the one it is about; nil for all others.
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

/// Finds the heads of the frames in what comes from a peer, before nghttp2 sees them: it tells
/// nothing of frames that it ignores, and those are what floods are made of.
struct FrameScanner {
    /// What ``next(_:at:)`` found.
    enum ScanResult {
        /// A frame whose head begins at `start`, or before the bytes if that is negative: then
        /// ``withheld`` goes to nghttp2 first.
        case frame(FrameHeader, start: Int)
        /// No more heads; the bytes up to `end` may go to nghttp2, what follows is withheld.
        case end(Int)
    }

    /// Bytes of the head, and of PRIORITY and PRIORITY_UPDATE so much of the payload as is read
    /// here.
    private var collected: [UInt8] = []
    /// The head in ``collected`` has been found.
    private var isHeaderComplete = false
    private var payloadLeft: Int
    /// The header block that is not complete, by its stream: only CONTINUATION may follow.
    private(set) var openHeaderBlock: Int32?

    private static let headBytes = 9
    private static let streamBytes = 4
    /// Of a PRIORITY_UPDATE frame; longer ones say more than a priority.
    private static let updateBytesMax = 68

    /// `prefaceBytes` come before the first frame.
    init(prefaceBytes: Int) {
        payloadLeft = prefaceBytes
        collected.reserveCapacity(Self.headBytes + Self.updateBytesMax)
    }

    /// The bytes of the frame found last, or withheld of the next.
    var bufferedBytes: [UInt8] { collected }

    /// The value of the PRIORITY_UPDATE frame found last, if it is not too long.
    var updateValue: ArraySlice<UInt8>? {
        guard collected.count > Self.headBytes, head.length <= Self.updateBytesMax else {
            return nil
        }
        return collected[(Self.headBytes + Self.streamBytes)...]
    }

    /// The next head from `position`, which is moved past it.
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
        payloadLeft = Self.headBytes + head.length - collected.count
        if head.type == FrameHeader.headers || head.type == FrameHeader.continuation {
            openHeaderBlock = head.hasFlag(FrameHeader.endHeaders) ? nil : head.streamID
        }
        return .frame(head, start: start)
    }

    private var bytesNeeded: Int {
        guard collected.count >= Self.headBytes else { return Self.headBytes }
        let head = head
        switch head.type {
        case FrameHeader.priority where head.length == 5: return Self.headBytes + Self.streamBytes
        case FrameHeader.priorityUpdate where head.length >= Self.streamBytes:
            return Self.headBytes + min(head.length, Self.updateBytesMax)
        default: return Self.headBytes
        }
    }

    private var head: FrameHeader {
        let length = Int(collected[0]) << 16 | Int(collected[1]) << 8 | Int(collected[2])
        return FrameHeader(
            length: length, type: collected[3], flags: collected[4], streamID: id(at: 5),
            relatedStream: collected.count >= Self.headBytes + Self.streamBytes
                ? id(at: Self.headBytes) : nil)
    }

    private func id(at offset: Int) -> Int32 {
        var id: Int32 = 0
        for index in offset..<offset + 4 { id = id << 8 | Int32(collected[index]) }
        return id & .max
    }
}
