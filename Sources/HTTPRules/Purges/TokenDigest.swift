import Ground

/// The SHA-256 digest of a secret token; nodes neither store nor compare the tokens themselves.
package struct TokenDigest: Hashable, Sendable {
    /// The length of a digest in bytes.
    package static let bytesCount = 32

    private let high: UInt128
    private let low: UInt128

    /// Creates the digest from its 32 bytes.
    package init(_ bytes: Span<UInt8>) {
        precondition(bytes.count == Self.bytesCount, "\(bytes.count) bytes are no SHA-256")
        var (high, low): (UInt128, UInt128) = (0, 0)
        for index in 0..<16 {
            high = high << 8 | UInt128(bytes[index])
            low = low << 8 | UInt128(bytes[index + 16])
        }
        (self.high, self.low) = (high, low)
    }

    /// The first half of the digest, which identifies the client.
    package var clientID: UInt128 { high }

    /// Returns true if the digest is one of `others`, in constant time for a given number of them.
    package func isAmong(_ others: [TokenDigest]) -> Bool {
        var found = false
        for other in others {
            let isSame = (high ^ other.high) | (low ^ other.low) == 0
            found = isSame || found
        }
        return found
    }
}

/// A file of tokens, one per line; a client with one of them has the permission that the file
/// grants.
package enum TokenFile {
    /// The minimum length of a token in bytes; shorter ones could be guessed.
    package static let tokenBytesMin = 16
    /// The maximum length of a token in bytes.
    package static let tokenBytesMax = 512
    /// The maximum number of tokens; every request is compared with all of them.
    package static let countMax = 16

    /// The valid content of a token file, for messages.
    package static let allowed =
        "1 to \(countMax) lines, each a token of \(tokenBytesMin) to \(tokenBytesMax) letters, "
        + "digits and -._~+/=; # begins a comment line"

    /// Returns the tokens in order.
    ///
    /// Empty lines and lines that begin with `#` are skipped; a line may end in CR LF.
    ///
    /// - Throws: ``TokenFileFault`` for the first fault found.
    package static func tokens(of bytes: [UInt8]) throws(TokenFileFault) -> [[UInt8]] {
        var tokens: [[UInt8]] = []
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            let text = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard let first = text.first, first != UInt8(ascii: "#") else { continue }
            guard text.allSatisfy(BearerToken.isByte) else { throw .byte(line: index + 1) }
            guard tokenBytesMin...tokenBytesMax ~= text.count else {
                throw .length(line: index + 1, count: text.count)
            }
            guard !tokens.contains(Array(text)) else { throw .repeated(line: index + 1) }
            tokens.append(Array(text))
        }
        guard !tokens.isEmpty else { throw .noTokens }
        guard tokens.count <= countMax else { throw .tooMany(tokens.count) }
        return tokens
    }
}

/// The reason why a token file is invalid; it holds nothing of the file's content.
package enum TokenFileFault: Error, Hashable, Sendable {
    case noTokens
    case tooMany(Int)
    /// A line holds a byte that no token has (RFC 6750 §2.1).
    case byte(line: Int)
    case length(line: Int, count: Int)
    case repeated(line: Int)

    /// The fault as one clause, without a full stop.
    package var message: String {
        switch self {
        case .noTokens: "it contains no token"
        case .tooMany(let count): "it contains \(count) tokens"
        case .byte(let line): "line \(line) contains a character that a token cannot have"
        case .length(let line, let count): "the token in line \(line) has \(count) characters"
        case .repeated(let line): "line \(line) repeats a token"
        }
    }
}

/// The token in a request's Authorization field (RFC 6750 §2.1).
package enum BearerToken {
    /// Returns the token's bytes; `nil` if the field is missing, duplicated, of another scheme, or
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

    /// Returns true for a byte of `b64token` (RFC 6750 §2.1).
    static func isByte(_ byte: UInt8) -> Bool {
        ASCII.isLetter(byte) || ASCII.isDigit(byte) || "-._~+/=".utf8.contains(byte)
    }
}
