package import Ground

/// A non-negative number of seconds in a field value (RFC 9111 §1.2.2).
package enum DeltaSeconds {
    /// What every greater number counts as; about 68 years.
    package static let max: Int64 = 2_147_483_648

    /// The number in `range`; nil if it is empty or not of digits only.
    package static func parse(_ bytes: Span<UInt8>, at range: Range<Int>) -> Interval? {
        if range.isEmpty { return nil }
        var seconds: Int64 = 0
        for index in range {
            guard ASCII.isDigit(bytes[index]) else { return nil }
            seconds = min(max, seconds * 10 + Int64(bytes[index] &- 0x30))
        }
        return .seconds(seconds)
    }
}
