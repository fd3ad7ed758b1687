/// Writes the fields of an HTTP/2 answer as the HTTP/1.1 head that says the same (RFC 9113 §8.3.2).
///
/// `:status` comes first and is three digits, which nghttp2 holds the peer to, as it does to values
/// without CR, LF and NUL.
struct HTTP1ResponseHeadWriter: ~Copyable {
    private(set) var text = ScratchBuffer(capacity: 4096)
    /// Field lines of ``text``.
    private(set) var linesCount = 0
    /// 100 to 999.
    private(set) var status = 0
    private var hasLength = false

    mutating func begin() {
        text.removeAll()
        linesCount = 0
        status = 0
        hasLength = false
    }

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

    /// Ends the head; a body without a length is said to be chunked, which only HTTP/1.1 calls it.
    mutating func finish(hasBody: Bool) {
        if hasBody, !hasLength {
            text.append("Transfer-Encoding: chunked\r\n")
            linesCount += 1
        }
        text.append("\r\n")
    }
}
