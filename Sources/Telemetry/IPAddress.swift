/// An IPv4 or IPv6 address as a number; two are equal if family and number are.
package struct IPAddress: Hashable, Sendable {
    /// The version of the Internet Protocol.
    package enum Family: Sendable {
        case v4
        case v6

        /// The number of bits of an address.
        package var bitWidth: Int { self == .v4 ? 32 : 128 }
    }

    package let family: Family
    /// The address, first octet most significant; of IPv4 the low 32 bits.
    package let bits: UInt128

    package init(family: Family, bits: UInt128) {
        self.family = family
        self.bits = bits
    }

    /// The address in `text`: four decimal octets, or RFC 4291 §2.2 without brackets and zone.
    package init?(_ text: String) {
        if let bits = Self.parseV4(text) {
            self.init(family: .v4, bits: UInt128(bits))
            return
        }
        guard let bits = Self.parseV6(text) else { return nil }
        self.init(family: .v6, bits: bits)
    }

    /// 127.0.0.0/8 or `::1`.
    package var isLoopback: Bool {
        family == .v4 ? bits >> 24 == 127 : bits == 1
    }

    /// Decimal without leading zeros: a zero in front means octal elsewhere, so it is refused here.
    private static func parseV4(_ text: String) -> UInt32? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bits: UInt32 = 0
        for part in parts {
            guard let octet = decimalOctet(part) else { return nil }
            bits = bits << 8 | UInt32(octet)
        }
        return bits
    }

    private static func decimalOctet(_ digits: Substring.UTF8View) -> UInt8? {
        guard (1...3).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
            digits.count == 1 || digits.first != UInt8(ascii: "0")
        else { return nil }
        return UInt8(Substring(digits))
    }

    private static func parseV6(_ text: String) -> UInt128? {
        let halves = splitAtGap(text)
        guard let head = groups(halves.head, mayEndInV4: halves.tail == nil) else { return nil }
        guard let tailText = halves.tail else {
            return head.count == 8 ? number(head) : nil
        }
        guard let tail = groups(tailText, mayEndInV4: true), head.count + tail.count < 8
        else { return nil }
        let gap = [UInt16](repeating: 0, count: 8 - head.count - tail.count)
        return number(head + gap + tail)
    }

    /// What stands before and after the first `::`; the tail is nil without one.
    ///
    /// A second one leaves an empty group in the tail, which no group may be.
    private static func splitAtGap(_ text: String) -> (head: Substring, tail: Substring?) {
        guard let gap = text.firstRange(of: "::") else { return (text[...], nil) }
        return (text[..<gap.lowerBound], text[gap.upperBound...])
    }

    private static func groups(_ text: Substring, mayEndInV4: Bool) -> [UInt16]? {
        if text.isEmpty { return [] }
        var groups: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() {
            if mayEndInV4, index == parts.count - 1, let bits = parseV4(String(part)) {
                groups += [UInt16(bits >> 16), UInt16(truncatingIfNeeded: bits)]
                continue
            }
            guard (1...4).contains(part.utf8.count), part.allSatisfy(\.isHexDigit),
                let group = UInt16(part, radix: 16)
            else { return nil }
            groups.append(group)
        }
        return groups
    }

    private static func number(_ groups: [UInt16]) -> UInt128 {
        groups.reduce(0) { $0 << 16 | UInt128($1) }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The canonical text: decimal octets, or RFC 5952 §4 without brackets.
    package var description: String {
        if family == .v4 {
            return [24, 16, 8, 0].map { String((bits >> $0) & 0xFF) }.joined(separator: ".")
        }
        let groups = (0..<8).map { UInt16(truncatingIfNeeded: bits >> (112 - 16 * UInt128($0))) }
        let gap = Self.longestZeros(groups)
        guard gap.count > 1 else { return Self.join(groups[...]) }
        return Self.join(groups[..<gap.lowerBound]) + "::" + Self.join(groups[gap.upperBound...])
    }

    private static func join(_ groups: ArraySlice<UInt16>) -> String {
        groups.map { String($0, radix: 16) }.joined(separator: ":")
    }

    /// The first of the longest runs of zero groups.
    private static func longestZeros(_ groups: [UInt16]) -> Range<Int> {
        var longest = 0..<0
        var start = 0
        for (index, group) in groups.enumerated() {
            if group != 0 { start = index + 1 }
            if index + 1 - start > longest.count { longest = start..<index + 1 }
        }
        return longest
    }
}
