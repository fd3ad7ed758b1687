package import Ground

/// Reduces a client's Accept and Accept-Encoding, line by line, to what the node forwards to the
/// origin (RFC 9110 §12.5.1, §12.5.3).
///
/// Only types and codings that are named explicitly count: clients that support neither AVIF nor
/// JPEG XL send `image/*`, too. A type or coding with a weight of 0 in any line is not accepted. Of
/// the codings, br is preferred to gzip, and gzip to none.
package struct NegotiationNormaliser: Hashable, Sendable {
    // Raw bits: the set operations of a type from another module are not specialised here.
    private var accepted: UInt8 = 0
    private var refused: UInt8 = 0

    /// Creates a normaliser without lines.
    package init() {}

    /// Creates a normaliser from the Accept and Accept-Encoding lines among `lines`, which lie in
    /// `bytes`.
    package init(_ lines: [FieldLine], in bytes: Span<UInt8>) {
        for line in lines { add(line, in: bytes) }
    }

    /// Adds a line that lies in `bytes`, if it is Accept or Accept-Encoding.
    package mutating func add(_ line: FieldLine, in bytes: Span<UInt8>) {
        switch line.id {
        case .accept: addAccept(bytes, at: line.value.range)
        case .acceptEncoding: addAcceptEncoding(bytes, at: line.value.range)
        default: break
        }
    }

    /// The reduced negotiation of all lines added.
    @inline(__always)
    package var negotiation: Negotiation {
        let accepted = accepted & ~refused
        let hasBrotli = accepted & Negotiation.brotli.rawValue != 0
        let dropped = hasBrotli ? Negotiation.gzip.rawValue : 0
        return Negotiation(rawValue: accepted & ~dropped)
    }

    /// Adds the value of one Accept line.
    package mutating func addAccept(_ bytes: Span<UInt8>, at range: Range<Int>) {
        add(bytes, at: range, alphabet: .mediaRange, known: Self.typeBit)
    }

    /// Adds the value of one Accept-Encoding line.
    package mutating func addAcceptEncoding(_ bytes: Span<UInt8>, at range: Range<Int>) {
        add(bytes, at: range, alphabet: .token, known: Self.codingBit)
    }

    /// Adds the members of a list to the accepted or refused bits; unknown members have no effect.
    @inline(__always)
    private mutating func add(
        _ bytes: Span<UInt8>, at range: Range<Int>, alphabet: ByteSet,
        known: (ShortToken) -> UInt8
    ) {
        let value = bytes.extracting(range)
        var index = 0
        while index < value.count {
            index = Self.elementStart(value, index, value.count)
            var word = ShortToken()
            while index < value.count, alphabet.contains(value[index]) {
                word.append(value[index])
                index += 1
            }
            let bits = known(word)
            let isRefused = Self.skipParameters(value, &index, value.count)
            accepted |= bits
            if isRefused { refused |= bits }
        }
    }

    /// The last 16 bytes of a token in lower case, and the token's length.
    ///
    /// No byte of a token is 0, so tokens of at most 16 bytes are equal if the numbers are.
    private struct ShortToken {
        var high: UInt64 = 0
        var low: UInt64 = 0
        var count = 0

        /// Appends a token byte or a slash.
        ///
        /// Setting the lower-case bit turns none of these bytes into another one that is looked
        /// for.
        @inline(__always)
        mutating func append(_ byte: UInt8) {
            high = high << 8 | low >> 56
            low = low << 8 | UInt64(byte | 0x20)
            count += 1
        }
    }

    /// Returns the bit of a type; 0 if it is not one that counts.
    @inline(__always)
    private static func typeBit(_ word: ShortToken) -> UInt8 {
        switch (word.count, word.high, word.low) {
        // "im", "age/avif"
        case (10, 0x696D, 0x6167_652F_6176_6966): Negotiation.avif.rawValue
        // "im", "age/webp"
        case (10, 0x696D, 0x6167_652F_7765_6270): Negotiation.webp.rawValue
        // "i", "mage/jxl"
        case (9, 0x69, 0x6D61_6765_2F6A_786C): Negotiation.jxl.rawValue
        // "image", "/svg+xml"
        case (13, 0x69_6D61_6765, 0x2F73_7667_2B78_6D6C): Negotiation.svg.rawValue
        default: 0
        }
    }

    /// Returns the bit of a coding; 0 if it is not one that counts.
    @inline(__always)
    private static func codingBit(_ word: ShortToken) -> UInt8 {
        switch (word.count, word.low) {
        // "br"
        case (2, 0x6272): Negotiation.brotli.rawValue
        // "gzip", and "x-gzip", its old name (RFC 9110 §8.4.1.3)
        case (4, 0x677A_6970), (6, 0x782D_677A_6970): Negotiation.gzip.rawValue
        default: 0
        }
    }

    @inline(__always)
    private static func elementStart(_ bytes: Span<UInt8>, _ from: Int, _ end: Int) -> Int {
        var index = from
        while index < end,
            ASCII.isWhitespace(bytes[index]) || bytes[index] == UInt8(ascii: ",")
        {
            index += 1
        }
        return index
    }

    /// Skips the element's parameters up to its comma or the end; returns true if its weight is 0.
    ///
    /// An element that continues with anything else than parameters is malformed and counts as
    /// refused.
    @inline(__always)
    private static func skipParameters(
        _ bytes: Span<UInt8>, _ index: inout Int, _ end: Int
    ) -> Bool {
        while index < end, ASCII.isWhitespace(bytes[index]) { index += 1 }
        guard index < end, bytes[index] != UInt8(ascii: ",") else { return false }
        let start = index
        index = FieldSyntax.find(UInt8(ascii: ","), in: bytes, at: start..<end)
        return bytes[start] != UInt8(ascii: ";") || weightIsZero(bytes, at: start..<index)
    }

    /// Returns true if one of the parameters in `range` is `q=0`, `q=0.0` and so on (RFC 9110
    /// §12.4.2).
    private static func weightIsZero(_ bytes: Span<UInt8>, at range: Range<Int>) -> Bool {
        var start = range.lowerBound + 1
        while start < range.upperBound {
            let end = FieldSyntax.find(
                UInt8(ascii: ";"), in: bytes, at: start..<range.upperBound)
            let parameter = FieldSyntax.trimmed(bytes, at: start..<end)
            start = end + 1
            guard parameter.count >= 3, bytes[parameter.lowerBound] | 0x20 == UInt8(ascii: "q"),
                bytes[parameter.lowerBound + 1] == UInt8(ascii: "="),
                bytes[parameter.lowerBound + 2] == UInt8(ascii: "0")
            else { continue }
            var index = parameter.lowerBound + 3
            if index < parameter.upperBound, bytes[index] == UInt8(ascii: ".") { index += 1 }
            while index < parameter.upperBound, bytes[index] == UInt8(ascii: "0") { index += 1 }
            if index == parameter.upperBound { return true }
        }
        return false
    }

    /// Appends the value of Accept for the origin: the accepted types, then `image/*` and `*/*`.
    package static func appendAccept(_ negotiation: Negotiation, to bytes: inout [UInt8]) {
        if negotiation.contains(.avif) { bytes.append(contentsOf: "image/avif,".utf8) }
        if negotiation.contains(.webp) { bytes.append(contentsOf: "image/webp,".utf8) }
        if negotiation.contains(.jxl) { bytes.append(contentsOf: "image/jxl,".utf8) }
        if negotiation.contains(.svg) { bytes.append(contentsOf: "image/svg+xml,".utf8) }
        bytes.append(contentsOf: "image/*,*/*;q=0.8".utf8)
    }

    /// Appends the value of Accept-Encoding for the origin: the one accepted coding, or `identity`.
    package static func appendAcceptEncoding(_ negotiation: Negotiation, to bytes: inout [UInt8]) {
        if negotiation.contains(.brotli) {
            bytes.append(contentsOf: "br".utf8)
        } else if negotiation.contains(.gzip) {
            bytes.append(contentsOf: "gzip".utf8)
        } else {
            bytes.append(contentsOf: "identity".utf8)
        }
    }
}
