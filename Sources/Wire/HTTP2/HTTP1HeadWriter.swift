/// Writes the fields of an HTTP/2 request as the equivalent HTTP/1.1 head (RFC 9113 §8.3.1,
/// §8.2.3).
///
/// Pseudo-header fields come first, which nghttp2 enforces, so the request line is written at the
/// first other field or at the end. Values contain no CR, LF or NUL, which nghttp2 rejects (RFC
/// 9113 §8.2.1), so each field is one line.
struct HTTP1RequestHeadWriter: ~Copyable {
    private(set) var text = ScratchBuffer(capacity: 4096)
    /// The number of field lines in ``text``, including Host and the lines added here.
    private(set) var linesCount = 0
    private var method = ScratchBuffer(capacity: 16)
    private var path = ScratchBuffer(capacity: 1024)
    private var authority = ScratchBuffer(capacity: 256)
    private var cookie = ScratchBuffer(capacity: 256)
    private var hasHTTPScheme = false
    private var hasRequestLine = false
    private var hasHost = false
    private var hasLength = false
    /// True if a pseudo-header field is unknown, the scheme is not http or https, or Host is
    /// repeated or contradicts `:authority`; the request must then be rejected.
    private(set) var isMalformed = false

    /// Discards everything, to write another head.
    mutating func begin() {
        text.removeAll()
        method.removeAll()
        path.removeAll()
        authority.removeAll()
        cookie.removeAll()
        linesCount = 0
        hasHTTPScheme = false
        hasRequestLine = false
        hasHost = false
        hasLength = false
        isMalformed = false
    }

    /// Appends a field or a pseudo-header field; cookies are joined into one line at the end.
    mutating func append(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        guard let first = unsafe name.first else { return }
        if first == Byte.colon { return unsafe appendPseudoField(name, value) }
        if !hasRequestLine { writeRequestLine() }
        switch name.count {
        case 4 where unsafe equalsIgnoringCase(name, "host"): return unsafe appendHost(value)
        case 6 where unsafe equalsIgnoringCase(name, "cookie"):
            if cookie.count > 0 { cookie.append("; ") }
            return unsafe cookie.append(value)
        case 14 where unsafe equalsIgnoringCase(name, "content-length"): hasLength = true
        default: break
        }
        unsafe text.append(name)
        text.append(": ")
        unsafe text.append(value)
        text.append("\r\n")
        linesCount += 1
    }

    /// Ends the head; a body without a length is declared as chunked, although its bytes are not.
    mutating func finish(hasBody: Bool) {
        if !hasRequestLine { writeRequestLine() }
        if cookie.count > 0 {
            text.append("Cookie: ")
            unsafe text.append(cookie.bytes)
            text.append("\r\n")
            linesCount += 1
        }
        if hasBody, !hasLength {
            text.append("Transfer-Encoding: chunked\r\n")
            linesCount += 1
        }
        text.append("\r\n")
        if path.count > 0, !hasHTTPScheme { isMalformed = true }
    }

    /// Keeps the value of a pseudo-header field for the request line and Host.
    private mutating func appendPseudoField(
        _ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>
    ) {
        switch name.count {
        case 5: unsafe path.append(value)
        case 10: unsafe authority.append(value)
        case 7 where unsafe name[1] == UInt8(ascii: "m"): unsafe method.append(value)
        case 7:
            hasHTTPScheme =
                unsafe equalsIgnoringCase(value, "http") || equalsIgnoringCase(value, "https")
        default: isMalformed = true
        }
    }

    /// Appends Host; beside `:authority` it must have the same value, and is dropped.
    private mutating func appendHost(_ value: UnsafeBufferPointer<UInt8>) {
        guard authority.count > 0 else {
            if hasHost { isMalformed = true }
            hasHost = true
            text.append("Host: ")
            unsafe text.append(value)
            text.append("\r\n")
            linesCount += 1
            return
        }
        if unsafe !equalsIgnoringCase(authority.bytes, value) { isMalformed = true }
    }

    /// Writes the request line; CONNECT has no path, and its target is the authority (RFC 9113
    /// §8.5).
    private mutating func writeRequestLine() {
        hasRequestLine = true
        unsafe text.append(method.bytes)
        text.append(Byte.space)
        unsafe text.append(path.count > 0 ? path.bytes : authority.bytes)
        text.append(" HTTP/1.1\r\n")
        if authority.count > 0 {
            text.append("Host: ")
            unsafe text.append(authority.bytes)
            text.append("\r\n")
            linesCount += 1
        }
    }

    /// Compares bytes with a lower-case text, ignoring case; CR would count as `-`, but does not
    /// occur.
    @inline(__always)
    private func equalsIgnoringCase(_ bytes: UnsafeBufferPointer<UInt8>, _ text: StaticString)
        -> Bool
    {
        guard bytes.count == text.utf8CodeUnitCount else { return false }
        for index in 0..<bytes.count
        where unsafe bytes[index] | 0x20 != text.utf8Start[index] | 0x20 {
            return false
        }
        return true
    }

    /// Compares two texts, ignoring the case of letters.
    private func equalsIgnoringCase(
        _ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>
    ) -> Bool {
        guard left.count == right.count else { return false }
        for index in 0..<left.count {
            let first = unsafe left[index]
            let second = unsafe right[index]
            guard first != second else { continue }
            let letter = first | 0x20
            guard letter == second | 0x20, letter >= UInt8(ascii: "a"),
                letter <= UInt8(ascii: "z")
            else { return false }
        }
        return true
    }
}

/// Writes the fields of an HTTP/2 response as the equivalent HTTP/1.1 head (RFC 9113 §8.3.2).
///
/// nghttp2 enforces that `:status` comes first and has three digits, and that values contain no CR,
/// LF or NUL.
struct HTTP1ResponseHeadWriter: ~Copyable {
    private(set) var text = ScratchBuffer(capacity: 4096)
    /// The number of field lines in ``text``.
    private(set) var linesCount = 0
    /// The status code, 100 to 999.
    private(set) var status = 0
    private var hasLength = false

    /// Discards everything, to write another head.
    mutating func begin() {
        text.removeAll()
        linesCount = 0
        status = 0
        hasLength = false
    }

    /// Appends a field, or for `:status` the status line.
    mutating func append(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        if unsafe name.first == Byte.colon {
            for index in 0..<value.count {
                status = unsafe status * 10 + Int(value[index] &- 0x30)
            }
            text.append("HTTP/1.1 ")
            unsafe text.append(value)
            text.append(" \r\n")
            return
        }
        if name.count == 14, unsafe name.elementsEqual("content-length".utf8) { hasLength = true }
        unsafe text.append(name)
        text.append(": ")
        unsafe text.append(value)
        text.append("\r\n")
        linesCount += 1
    }

    /// Ends the head; a body without a length is declared as chunked, although its bytes are not.
    mutating func finish(hasBody: Bool) {
        if hasBody, !hasLength {
            text.append("Transfer-Encoding: chunked\r\n")
            linesCount += 1
        }
        text.append("\r\n")
    }
}

/// A buffer for bytes that are assembled, read once and dropped; its memory is kept, and only
/// grows.
@safe
struct ScratchBuffer: ~Copyable {
    private var start: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        unsafe start = .allocate(capacity: capacity)
    }

    deinit {
        unsafe start.deallocate()
    }

    /// The bytes; valid until the next append.
    var bytes: UnsafeBufferPointer<UInt8> {
        unsafe UnsafeBufferPointer(start: start, count: count)
    }

    mutating func removeAll() {
        count = 0
    }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        if count == capacity { grow(by: 1) }
        unsafe start[count] = byte
        count &+= 1
    }

    @inline(__always)
    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        if capacity &- count < bytes.count { grow(by: bytes.count) }
        unsafe (start + count).update(from: source, count: bytes.count)
        count &+= bytes.count
    }

    @inline(__always)
    mutating func append(_ text: StaticString) {
        unsafe append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inline(never)
    private mutating func grow(by more: Int) {
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        unsafe moved.update(from: start, count: count)
        unsafe start.deallocate()
        unsafe start = moved
        capacity = larger
    }
}
