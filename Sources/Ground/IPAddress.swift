/// An IPv4 or IPv6 address as a number, without port and without zone.
package enum IPAddress: Hashable, Sendable {
    /// The four bytes in network order, the first in the highest bits.
    case v4(UInt32)
    /// The sixteen bytes in network order, the first in the highest bits.
    case v6(UInt128)

    /// Creates an address from four or sixteen bytes in network order; `nil` for any other count.
    package init?(_ bytes: Span<UInt8>) {
        var number: UInt128 = 0
        for index in 0..<bytes.count { number = number << 8 | UInt128(bytes[index]) }
        switch bytes.count {
        case 4: self = .v4(UInt32(truncatingIfNeeded: number))
        case 16: self = .v6(number)
        default: return nil
        }
    }

    /// The four or sixteen bytes in network order.
    package var networkBytes: [UInt8] {
        switch self {
        case .v4(let number): (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        case .v6(let number): (0..<16).map { UInt8(truncatingIfNeeded: number >> (120 - 8 * $0)) }
        }
    }

    /// The IPv4 address if this is an IPv4-mapped IPv6 address (::ffff:0:0/96, RFC 4291 §2.5.5.2),
    /// otherwise the address unchanged.
    package var unmapped: IPAddress {
        guard case .v6(let number) = self, number >> 32 == 0xFFFF else { return self }
        return .v4(UInt32(truncatingIfNeeded: number))
    }

    /// The number that identifies a client: its IPv4 address, or the /64 prefix of its IPv6
    /// address.
    ///
    /// All addresses of a /64 usually belong to one client.
    package var clientPrefix: UInt128 {
        switch unmapped {
        case .v4(let number): UInt128(number)
        case .v6(let number): (number >> 64) << 64
        }
    }

    /// Number of bits: 32 or 128.
    package var bitCount: Int {
        if case .v4 = self { 32 } else { 128 }
    }

    /// True for 127.0.0.0/8 and `::1`; false for the IPv4-mapped form of the former.
    package var isLoopback: Bool {
        switch self {
        case .v4(let number): number >> 24 == 127
        case .v6(let number): number == 1
        }
    }
}

extension IPAddress {
    /// Parses dotted decimal (four parts, no leading zeros) or an IPv6 text (RFC 4291 §2.2) without
    /// brackets and zone; `nil` for any other text.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        if let number = Self.readV4(bytes.span, at: 0..<bytes.count) {
            self = .v4(number)
        } else if let number = Self.readV6(bytes.span, at: 0..<bytes.count) {
            self = .v6(number)
        } else {
            return nil
        }
    }

    /// Parses four decimal numbers of 0 to 255 separated by dots; `nil` for any other text.
    ///
    /// The first part becomes the highest byte. Leading zeros are rejected because other parsers
    /// read them as octal.
    package static func readV4(_ bytes: Span<UInt8>, at range: Range<Int>) -> UInt32? {
        var address: UInt32 = 0
        var parts = 0
        var index = range.lowerBound
        while true {
            let start = index
            var part: UInt32 = 0
            while index < range.upperBound, index < start + 4, ASCII.isDigit(bytes[index]) {
                part = part * 10 + UInt32(bytes[index] &- 0x30)
                index += 1
            }
            guard index > start, part <= 255,
                index == start + 1 || bytes[start] != UInt8(ascii: "0")
            else { return nil }
            address = address << 8 | part
            parts += 1
            if index == range.upperBound { return parts == 4 ? address : nil }
            guard parts < 4, bytes[index] == UInt8(ascii: ".") else { return nil }
            index += 1
        }
    }

    /// Parses any IPv6 text form (RFC 4291 §2.2) without brackets and zone; `nil` for any other
    /// text.
    package static func readV6(_ bytes: Span<UInt8>, at range: Range<Int>) -> UInt128? {
        var groups: InlineArray<8, UInt16> = .init(repeating: 0)
        var count = 0
        var gap: Int?
        var index = range.lowerBound
        if range.count >= 2, bytes[index] == UInt8(ascii: ":") {
            guard bytes[index + 1] == UInt8(ascii: ":") else { return nil }
            gap = 0
            index += 2
        }
        while index < range.upperBound {
            guard count < 8 else { return nil }
            let start = index
            var group: UInt16 = 0
            while index < range.upperBound, index < start + 4,
                let digit = ASCII.hexValue(bytes[index])
            {
                group = group << 4 | UInt16(digit)
                index += 1
            }
            if index < range.upperBound, bytes[index] == UInt8(ascii: ".") {
                guard count <= 6, let last = readV4(bytes, at: start..<range.upperBound)
                else { return nil }
                groups[count] = UInt16(truncatingIfNeeded: last >> 16)
                groups[count + 1] = UInt16(truncatingIfNeeded: last)
                count += 2
                break
            }
            guard index > start else { return nil }
            groups[count] = group
            count += 1
            if index == range.upperBound { break }
            guard bytes[index] == UInt8(ascii: ":") else { return nil }
            index += 1
            guard index < range.upperBound else { return nil }
            guard bytes[index] == UInt8(ascii: ":") else { continue }
            guard gap == nil else { return nil }
            gap = count
            index += 1
        }
        guard gap == nil ? count == 8 : count < 8 else { return nil }
        return number(groups, count: count, gap: gap ?? count)
    }

    /// Assembles the address, inserting the zeros of `::` between the groups before and after
    /// `gap`.
    private static func number(
        _ groups: InlineArray<8, UInt16>, count: Int, gap: Int
    ) -> UInt128 {
        var number: UInt128 = 0
        for place in 0..<8 {
            let tail = place - (8 - count)
            let group = place < gap ? groups[place] : tail >= gap ? groups[tail] : 0
            number = number << 16 | UInt128(group)
        }
        return number
    }

    /// Appends the address in canonical text: dotted decimal, or RFC 5952 for IPv6.
    ///
    /// RFC 5952 is lower case without leading zeros, the first longest run of zeros is `::`, and an
    /// IPv4-mapped address ends in dotted decimal.
    package func append(to bytes: inout [UInt8]) {
        switch self {
        case .v4(let number): Self.appendV4(number, to: &bytes)
        case .v6(let number):
            guard number >> 32 != 0xFFFF else {
                bytes.append(contentsOf: "::ffff:".utf8)
                return Self.appendV4(UInt32(truncatingIfNeeded: number), to: &bytes)
            }
            Self.appendV6(number, to: &bytes)
        }
    }

    private static func appendV4(_ number: UInt32, to bytes: inout [UInt8]) {
        for part in 0..<4 {
            if part > 0 { bytes.append(UInt8(ascii: ".")) }
            ASCII.append(UInt64(number >> UInt32(24 - 8 * part) & 0xFF), to: &bytes)
        }
    }

    private static func appendV6(_ number: UInt128, to bytes: inout [UInt8]) {
        let zeros = longestZeros(number)
        var place = 0
        while place < 8 {
            if place == zeros.lowerBound, zeros.count > 1 {
                bytes.append(UInt8(ascii: ":"))
                bytes.append(UInt8(ascii: ":"))
                place = zeros.upperBound
                continue
            }
            if place > 0, place != zeros.upperBound || zeros.count < 2 {
                bytes.append(UInt8(ascii: ":"))
            }
            appendHex(group(number, place), to: &bytes)
            place += 1
        }
    }

    private static func group(_ number: UInt128, _ place: Int) -> UInt16 {
        UInt16(truncatingIfNeeded: number >> UInt128(112 - 16 * place))
    }

    private static func longestZeros(_ number: UInt128) -> Range<Int> {
        var longest = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, group(number, end) == 0 { end += 1 }
            if end - start > longest.count { longest = start..<end }
            start = end + 1
        }
        return longest
    }

    private static func appendHex(_ group: UInt16, to bytes: inout [UInt8]) {
        var begun = false
        for shift in stride(from: UInt16(12), through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: group >> shift) & 15
            if digit == 0, !begun, shift > 0 { continue }
            begun = true
            bytes.append(ASCII.hexDigit(digit))
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// The address as dotted decimal or as RFC 5952 text, without brackets.
    package var description: String {
        var text: [UInt8] = []
        append(to: &text)
        return String(decoding: text, as: UTF8.self)
    }
}
