/// Sets of ASCII bytes as two words of bits, one for each half of ASCII.
///
/// This room's own, though HTTPRules has such sets too: functions of another room are called, not
/// inlined, and these stand in loops over a head's bytes.
struct ByteClass {
    let low: UInt64
    let high: UInt64

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        let bits = byte < 64 ? low : high
        return byte < 128 && (bits &>> UInt64(byte & 63)) & 1 == 1
    }

    /// `tchar`, of which tokens are made: field names, methods, codings (RFC 9110 §5.6.2).
    static let token = ByteClass(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    /// `unreserved` and `sub-delims`, of which a registered name is made, without `%` (RFC 3986
    /// §3.2.2).
    static let registeredName = ByteClass(low: 0x2BFF_7FD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    /// Hexadecimal digits, `:` and `.`: what stands between the brackets of an IPv6 address.
    static let addressV6 = ByteClass(low: 0x07FF_4000_0000_0000, high: 0x0000_007E_0000_007E)
}

extension UInt8 {
    /// True for what a field value may hold: tab, space, visible ASCII and obs-text (RFC 9110
    /// §5.5).
    @inline(__always)
    var isFieldContent: Bool {
        self == Byte.tab || (self >= Byte.space && self != Byte.del)
    }
}
