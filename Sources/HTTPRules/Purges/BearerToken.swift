import Ground

/// The token in a request's Authorization field (RFC 6750 §2.1).
package enum BearerToken {
    /// The token's bytes; nil if the field is missing, there more than once, of another scheme, or
    /// malformed.
    package static func token(_ lines: [FieldLine], in bytes: Span<UInt8>) -> [UInt8]? {
        var found: Range<Int>?
        for line in lines where line.id == .authorization {
            if found != nil { return nil }
            found = line.value.range
        }
        guard let found, found.count > scheme.utf8.count else { return nil }
        let start = found.lowerBound + scheme.utf8.count
        guard bytes.matchesIgnoringCase(scheme, at: found.lowerBound..<start) else { return nil }
        let token = bytes.copy(FieldSyntax.trimmed(bytes, at: start..<found.upperBound))
        let isToken = !token.isEmpty && token.count <= TokenFile.tokenBytesMax
        return isToken && token.allSatisfy(isByte) ? token : nil
    }

    private static let scheme = "bearer "

    /// A byte of `b64token`.
    static func isByte(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._~+/=".utf8.contains(byte)
    }
}
