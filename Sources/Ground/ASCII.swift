/// Byte-level helpers for protocols with ASCII syntax.
///
/// None of them is aware of Unicode.
@usableFromInline package enum ASCII {
    /// Returns `byte` with `A`–`Z` mapped to `a`–`z` and every other byte unchanged.
    @inlinable @inline(__always)
    package static func lowercased(_ byte: UInt8) -> UInt8 {
        byte &- 0x41 < 26 ? byte | 0x20 : byte
    }

    /// True for `0`–`9`.
    @inlinable @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool {
        byte &- 0x30 < 10
    }

    /// True for `A`–`Z` and `a`–`z`.
    @inlinable @inline(__always)
    package static func isLetter(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26
    }

    /// True for a byte that may occur in a token (RFC 9110 §5.6.2).
    package static func isToken(_ byte: UInt8) -> Bool { ByteSet.token.contains(byte) }

    /// True for space and horizontal tab (`OWS`, RFC 9110 §5.6.3).
    @inlinable @inline(__always)
    package static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09
    }

    /// Returns the value of a hexadecimal digit of either case, or `nil` for any other byte.
    @inlinable @inline(__always)
    package static func hexValue(_ byte: UInt8) -> UInt8? {
        if byte &- 0x30 < 10 { return byte &- 0x30 }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }

    /// Returns the lower-case hexadecimal digit of `value`, which must be below 16.
    @inlinable @inline(__always)
    package static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? 0x30 + value : 0x57 + value
    }

    /// Appends `number` in decimal, without leading zeros.
    package static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        if number >= 10 { append(number / 10, to: &bytes) }
        bytes.append(0x30 + UInt8(number % 10))
    }
}

extension Span<UInt8> {
    /// True if the bytes in `range` are exactly those of `literal`.
    @inlinable
    package func matches(_ literal: String, at range: Range<Int>) -> Bool {
        let expected = literal.utf8Span.span
        guard expected.count == range.count else { return false }
        for offset in 0..<range.count where self[range.lowerBound + offset] != expected[offset] {
            return false
        }
        return true
    }

    /// True if the bytes in `range` equal `literal`, ignoring ASCII case.
    ///
    /// `literal` must be lower case.
    @inlinable
    package func matchesIgnoringCase(_ literal: String, at range: Range<Int>) -> Bool {
        let expected = literal.utf8Span.span
        guard expected.count == range.count else { return false }
        for offset in 0..<range.count
        where ASCII.lowercased(self[range.lowerBound + offset]) != expected[offset] {
            return false
        }
        return true
    }

    /// True if both spans hold the same bytes.
    @inlinable
    package func equals(_ other: Span<UInt8>) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where self[index] != other[index] { return false }
        return true
    }

    /// Returns a copy of the bytes in `range`.
    @inlinable
    package func copy(_ range: Range<Int>) -> [UInt8] {
        let part = extracting(range)
        // Allocated at full size first: appending byte by byte takes four times as long.
        var bytes = [UInt8](repeating: 0, count: part.count)
        for index in part.indices { bytes[index] = part[index] }
        return bytes
    }

    /// Parses the whole of `range`, at most 32 bytes, as lower-case hexadecimal digits.
    ///
    /// - Returns: `nil` if a byte is not such a digit.
    package func hexadecimal(at range: Range<Int>) -> UInt128? {
        var value: UInt128 = 0
        for index in range {
            guard let digit = ASCII.hexValue(self[index]), ASCII.hexDigit(digit) == self[index]
            else { return nil }
            value = value << 4 | UInt128(digit)
        }
        return value
    }

    /// Parses the whole of `range` as a decimal number.
    ///
    /// - Returns: `nil` if the range is empty, contains a byte that is not a digit, or exceeds
    ///   `UInt64.max`.
    @inlinable
    package func decimal(at range: Range<Int>) -> UInt64? {
        if range.isEmpty { return nil }
        var value: UInt64 = 0
        for index in range {
            guard ASCII.isDigit(self[index]) else { return nil }
            let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflow) = product.addingReportingOverflow(UInt64(self[index] &- 0x30))
            if tooLarge || overflow { return nil }
            value = sum
        }
        return value
    }
}

/// A set of ASCII bytes, one bit each; no byte above 127 is a member.
@usableFromInline package struct ByteSet: Hashable, Sendable {
    /// The bits of bytes 0 to 63.
    @usableFromInline let low: UInt64
    /// The bits of bytes 64 to 127.
    @usableFromInline let high: UInt64

    /// Creates a set from the bits of bytes 0 to 63 and of bytes 64 to 127.
    @inlinable @inline(__always)
    package init(low: UInt64, high: UInt64) {
        self.low = low
        self.high = high
    }

    /// Returns true if `byte` is in the set.
    @inlinable @inline(__always)
    package func contains(_ byte: UInt8) -> Bool {
        let word = byte < 64 ? low : high
        return byte < 128 && (word &>> UInt64(byte & 63)) & 1 != 0
    }

    /// The token characters, `tchar` (RFC 9110 §5.6.2).
    @inlinable @inline(__always)
    package static var token: ByteSet {
        ByteSet(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    }
}
