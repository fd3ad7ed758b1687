import Ground
package import HTTPRules

/// Why a request to an origin cannot be written: sending it would let a value speak as syntax.
package enum OriginRequestError: Error, Hashable {
    /// The target does not begin with `/`, or holds a byte that no URI holds.
    case invalidTarget
    /// Not `host[:port]`.
    case invalidHost
    /// A field name that is not a token.
    case invalidName
    /// A value with CR, LF, NUL or another control byte, or with white space around it.
    case invalidValue(FieldName)
    /// Host, Connection and the fields that frame a body are not the caller's to add.
    case reservedField(FieldName)
}

/// A request without a body, written for an origin (RFC 9112 §3, RFC 9110 §7.2).
///
/// Everything is checked as it is added, so that no byte from a client or a cache can end a line.
package struct OriginRequest: Sendable {
    private var bytes: [UInt8] = []

    /// Begins with the request line and Host.
    ///
    /// - Parameters:
    ///   - method: one whose requests need no body; `other` and CONNECT are a programmer's error.
    ///   - target: path and query in origin-form.
    ///   - host: host and, unless it is the scheme's default, port.
    /// - Throws: `invalidTarget` or `invalidHost`.
    package init(
        method: RequestMethod, target: Span<UInt8>, host: Span<UInt8>
    ) throws(OriginRequestError) {
        precondition(method != .other && method != .connect)
        guard target.count > 0, target[0] == Byte.slash else { throw .invalidTarget }
        for index in 0..<target.count
        where ByteLanes.outsideTarget(UInt64(target[index])) & 0x80 != 0 { throw .invalidTarget }
        guard Authority.isValid(host, at: 0..<host.count) else { throw .invalidHost }
        bytes.reserveCapacity(target.count + host.count + 256)
        append(method.text)
        bytes.append(Byte.space)
        append(target)
        append(" HTTP/1.1\r\nHost: ")
        append(host)
        append("\r\n")
    }

    /// Adds a field line.
    ///
    /// - Throws: `invalidValue`, `reservedField`, or `invalidName` for `other`.
    package mutating func add(
        _ name: FieldName, _ value: Span<UInt8>
    ) throws(OriginRequestError) {
        guard name != .other else { throw .invalidName }
        try check(name, value)
        appendName(name.text)
        appendValue(value)
    }

    /// Adds a field line whose value is ASCII text.
    ///
    /// - Throws: as ``add(_:_:)``.
    package mutating func add(
        _ name: FieldName, text: String
    ) throws(OriginRequestError) {
        let value = Array(text.utf8)
        try add(name, value.span)
    }

    /// Adds a field line with any name, as it is passed on from a client.
    ///
    /// - Throws: `invalidName`, `invalidValue` or `reservedField`.
    package mutating func add(
        name: Span<UInt8>, _ value: Span<UInt8>
    ) throws(OriginRequestError) {
        guard name.count > 0 else { throw .invalidName }
        for index in 0..<name.count where !ByteClass.token.contains(name[index]) {
            throw .invalidName
        }
        try check(FieldName(name, at: 0..<name.count), value)
        append(name)
        appendValue(value)
    }

    /// The request's bytes, up to and with the empty line.
    package consuming func finish() -> [UInt8] {
        append("\r\n")
        return bytes
    }

    private func check(_ name: FieldName, _ value: Span<UInt8>) throws(OriginRequestError) {
        switch name {
        case .host, .connection, .contentLength, .transferEncoding, .te, .trailer, .upgrade,
            .keepAlive, .expect:
            throw .reservedField(name)
        default: break
        }
        for index in 0..<value.count where !value[index].isFieldContent {
            throw .invalidValue(name)
        }
        guard value.count > 0 else { return }
        if FieldLineScan.isSpace(value[0]) || FieldLineScan.isSpace(value[value.count - 1]) {
            throw .invalidValue(name)
        }
    }

    private mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    }

    private mutating func append(_ span: Span<UInt8>) {
        for index in 0..<span.count { bytes.append(span[index]) }
    }

    /// Each word with a capital, as some old servers expect.
    private mutating func appendName(_ text: StaticString) {
        let start = bytes.count
        append(text)
        var isWordStart = true
        for index in start..<bytes.count {
            if isWordStart, bytes[index] >= 0x61 { bytes[index] &-= 0x20 }
            isWordStart = bytes[index] == 0x2D
        }
    }

    private mutating func appendValue(_ value: Span<UInt8>) {
        append(": ")
        append(value)
        append("\r\n")
    }
}
