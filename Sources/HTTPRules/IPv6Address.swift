import Ground

/// An IPv6 address, read in every form of RFC 4291 §2.2 and written in the one of RFC 5952.
package struct IPv6Address: Hashable, Sendable {
    /// The upper 64 bits.
    package var high: UInt64
    /// The lower 64 bits.
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Reads `range`, without brackets and without a zone; nil if it is no address.
    package init?(_ bytes: Span<UInt8>, at range: Range<Int>) {
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
                let digit = Byte.hexValue(bytes[index])
            {
                group = group << 4 | UInt16(digit)
                index += 1
            }
            if index < range.upperBound, bytes[index] == UInt8(ascii: ".") {
                guard count <= 6, let last = HostName.ipv4(bytes, at: start..<range.upperBound)
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
        self.init(groups, count: count, gap: gap ?? count)
    }

    /// Puts the zeros that `::` stands for between the groups before and after `gap`.
    private init(_ groups: InlineArray<8, UInt16>, count: Int, gap: Int) {
        high = 0
        low = 0
        for place in 0..<8 {
            let tail = place - (8 - count)
            let group = place < gap ? groups[place] : tail >= gap ? groups[tail] : 0
            if place < 4 {
                high = high << 16 | UInt64(group)
            } else {
                low = low << 16 | UInt64(group)
            }
        }
    }

    /// Appends the text of RFC 5952 §4: lower case, no leading zeros, the first longest run of
    /// zeros as `::`.
    ///
    /// An IPv4-mapped address ends in dotted decimal (RFC 5952 §5).
    package func append(to bytes: inout [UInt8]) {
        if high == 0, low >> 32 == 0xFFFF {
            bytes.append(contentsOf: "::ffff:".utf8)
            for part in 0..<4 {
                if part > 0 { bytes.append(UInt8(ascii: ".")) }
                ASCII.append((low >> UInt64(24 - 8 * part)) & 0xFF, to: &bytes)
            }
            return
        }
        let zeros = longestZeros
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
            appendHex(group(place), to: &bytes)
            place += 1
        }
    }

    private func group(_ place: Int) -> UInt16 {
        let half = place < 4 ? high : low
        return UInt16(truncatingIfNeeded: half >> UInt64(48 - 16 * (place & 3)))
    }

    private var longestZeros: Range<Int> {
        var longest = 0..<0
        var start = 0
        while start < 8 {
            var end = start
            while end < 8, group(end) == 0 { end += 1 }
            if end - start > longest.count { longest = start..<end }
            start = end + 1
        }
        return longest
    }

    private func appendHex(_ group: UInt16, to bytes: inout [UInt8]) {
        var begun = false
        for shift in stride(from: UInt16(12), through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: group >> shift) & 15
            if digit == 0, !begun, shift > 0 { continue }
            begun = true
            bytes.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
    }
}
