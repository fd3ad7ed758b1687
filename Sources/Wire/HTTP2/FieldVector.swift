import CNgHTTP2
import Ground

/// The fields of a head in the form that nghttp2 takes; they point into the head's own text.
///
/// nghttp2 copies them on submission, and lower-cases the names.
@safe
struct FieldVector: ~Copyable {
    private var start: UnsafeMutablePointer<nghttp2_nv>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        unsafe start = .allocate(capacity: capacity)
    }

    deinit {
        unsafe start.deallocate()
    }

    /// The first of ``count`` fields; valid until the next append.
    var fields: UnsafeMutablePointer<nghttp2_nv> { unsafe start }

    mutating func removeAll() {
        count = 0
    }

    /// Appends a field by reference: name and value must stay in place until the submission.
    @inline(__always)
    mutating func append(
        _ name: UnsafePointer<UInt8>, _ nameCount: Int, _ value: UnsafePointer<UInt8>,
        _ valueCount: Int, flags: UInt8 = 0
    ) {
        if count == capacity { grow() }
        unsafe (start + count).initialize(
            to: nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name),
                value: UnsafeMutablePointer(mutating: value),
                namelen: nameCount, valuelen: valueCount, flags: flags))
        count &+= 1
    }

    mutating func append(
        _ name: StaticString, _ value: UnsafePointer<UInt8>, _ valueCount: Int
    ) {
        unsafe append(name.utf8Start, name.utf8CodeUnitCount, value, valueCount)
    }

    /// Appends the field lines of `text` from the offset `position` up to an empty line or the end,
    /// without connection-specific fields of HTTP/1.1 (RFC 9113 §8.2.2).
    ///
    /// For a request, Host is omitted too, which becomes `:authority`, and TE other than
    /// `trailers`. The text must be valid, parsed before or produced by this node: lines are
    /// located, not validated.
    mutating func appendLines(
        _ text: Span<UInt8>, from position: Int, isRequest: Bool = false
    ) {
        unsafe text.withUnsafeBytes { bytes in
            var start = position
            while start < bytes.count, unsafe bytes[start] != Byte.carriageReturn,
                let colon = unsafe bytes.index(of: Byte.colon, from: start),
                let end = unsafe bytes.index(of: Byte.lineFeed, from: colon + 1)
            {
                let name = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<colon])
                let value = unsafe bytes.trimmed(colon + 1..<end)
                start = end + 1
                let use = unsafe Self.disposition(of: name, value, isRequest: isRequest)
                if use == .omitted { continue }
                unsafe append(name, value, flags: use == .notIndexed ? Self.notIndexed : 0)
            }
        }
    }

    private enum Disposition {
        case indexed
        /// Sent without indexing, because the value never repeats: in HPACK's table it would only
        /// evict entries that do (RFC 7541 §6.2).
        case notIndexed
        case omitted
    }

    private static let notIndexed = UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)

    /// Returns how to send a field, by its name and for TE by its value.
    @inline(__always)
    private static func disposition(
        of name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, isRequest: Bool
    ) -> Disposition {
        // Most names differ from all of these in length.
        switch name.count {
        case 2 where unsafe isRequest && name.isText("te"):
            unsafe value.isText("trailers") ? .indexed : .omitted
        case 4 where unsafe isRequest && name.isText("host"): .omitted
        case 7 where unsafe name.isText("upgrade"): .omitted
        case 10 where unsafe name.isText("connection") || name.isText("keep-alive"): .omitted
        case 11 where unsafe name.isText("traceparent"): .notIndexed
        case 12 where unsafe name.isText("x-request-id"): .notIndexed
        case 16 where unsafe name.isText("proxy-connection"): .omitted
        case 17 where unsafe name.isText("transfer-encoding"): .omitted
        default: .indexed
        }
    }

    @inline(__always)
    private mutating func append(
        _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, flags: UInt8
    ) {
        guard let nameStart = name.baseAddress, let valueStart = value.baseAddress else { return }
        unsafe append(
            nameStart.assumingMemoryBound(to: UInt8.self), name.count,
            valueStart.assumingMemoryBound(to: UInt8.self), value.count, flags: flags)
    }

    @inline(never)
    private mutating func grow() {
        let moved = UnsafeMutablePointer<nghttp2_nv>.allocate(capacity: capacity * 2)
        unsafe moved.update(from: start, count: count)
        unsafe start.deallocate()
        unsafe start = moved
        capacity *= 2
    }
}

extension UnsafeRawBufferPointer {
    /// Returns the offset of the first `byte` from `start` on; `nil` if there is none.
    @inline(__always)
    fileprivate func index(of byte: UInt8, from start: Int) -> Int? {
        var index = start
        while index &+ 8 <= count {
            let word = unsafe loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let found = ByteLanes.bytes(word.littleEndian, equalTo: byte)
            if found != 0 { return index &+ ByteLanes.firstIndex(found) }
            index &+= 8
        }
        while index < count {
            if unsafe self[index] == byte { return index }
            index &+= 1
        }
        return nil
    }

    /// Returns the bytes in `range` without white space, and without the CR of a line end, at both
    /// ends.
    @inline(__always)
    fileprivate func trimmed(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, unsafe Self.isBlank(self[start]) { start &+= 1 }
        while start < end, unsafe Self.isBlank(self[end &- 1]) { end &-= 1 }
        return unsafe UnsafeRawBufferPointer(rebasing: self[start..<end])
    }

    @inline(__always)
    private static func isBlank(_ byte: UInt8) -> Bool {
        byte == Byte.space || byte == Byte.tab || byte == Byte.carriageReturn
    }

    /// Returns true if the bytes are `text`, which is in lower case, ignoring case.
    @inline(__always)
    fileprivate func isText(_ text: StaticString) -> Bool {
        guard count == text.utf8CodeUnitCount else { return false }
        for index in 0..<count
        where unsafe ASCII.lowercased(self[index]) != text.utf8Start[index] { return false }
        return true
    }
}
