import Ground

/// The SHA-256 of a secret token: nodes keep no token, and compare none.
package struct TokenDigest: Hashable, Sendable {
    package static let bytesCount = 32

    private let high: UInt128
    private let low: UInt128

    /// The digest whose 32 bytes these are.
    package init(_ bytes: Span<UInt8>) {
        precondition(bytes.count == Self.bytesCount, "\(bytes.count) bytes are no SHA-256")
        var (high, low): (UInt128, UInt128) = (0, 0)
        for index in 0..<16 {
            high = high << 8 | UInt128(bytes[index])
            low = low << 8 | UInt128(bytes[index + 16])
        }
        (self.high, self.low) = (high, low)
    }

    /// Half of it, by which those who show tokens are told apart.
    package var clientID: UInt128 { high }

    /// True if it is one of `others`; takes as long whichever it is, and whichever byte is wrong.
    package func isAmong(_ others: [TokenDigest]) -> Bool {
        var found = false
        for other in others {
            let isSame = (high ^ other.high) | (low ^ other.low) == 0
            found = isSame || found
        }
        return found
    }
}

/// Tokens in a file, a line each: who knows one may do what the file is for.
package enum TokenFile {
    /// Fewer could be guessed.
    package static let tokenBytesMin = 16
    package static let tokenBytesMax = 512
    /// Every request is compared with all.
    package static let countMax = 16

    /// What a file of tokens may be.
    package static let allowed =
        "1 to \(countMax) lines, each a token of \(tokenBytesMin) to \(tokenBytesMax) letters, "
        + "digits and -._~+/=; # begins a comment line"

    /// The tokens in their order; lines that are empty or begin with `#` are skipped, and a line
    /// may end in CR LF.
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

/// Why a file of tokens is of no use; nothing of what stands in it is told.
package enum TokenFileFault: Error, Hashable, Sendable {
    case noTokens
    case tooMany(Int)
    /// Something that a token cannot have (RFC 6750 §2.1).
    case byte(line: Int)
    case length(line: Int, count: Int)
    case repeated(line: Int)

    /// One clause, without a full stop.
    package var message: String {
        switch self {
        case .noTokens: "it holds no token"
        case .tooMany(let count): "it holds \(count) tokens"
        case .byte(let line): "line \(line) holds what is no part of a token"
        case .length(let line, let count): "the token in line \(line) has \(count) characters"
        case .repeated(let line): "line \(line) repeats a token"
        }
    }
}

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
