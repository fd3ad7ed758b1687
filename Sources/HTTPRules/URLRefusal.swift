/// Why a URL is refused as the name of an image.
///
/// Offsets count bytes from the start of the URL, from 0.
package enum URLRefusal: Error, Hashable, Sendable {
    /// No bytes at all.
    case empty
    /// Longer than `bytesMax` in canonical form.
    case tooLong(bytesMax: Int)
    /// In the query value, before decoding: a `%` without two hexadecimal digits.
    case valueEscape(offset: Int)
    /// In the URL: a `%` without two hexadecimal digits.
    case escape(offset: Int)
    /// A byte below 0x20, or 0x7F.
    case control(offset: Int, byte: UInt8)
    /// The URL does not begin with `http://` or `https://`.
    case scheme
    /// A user name or a password before the host.
    case userInfo(offset: Int)
    /// Nothing where the host should be.
    case hostEmpty(offset: Int)
    /// A host that is not in ASCII.
    case hostNotASCII(offset: Int)
    /// A byte that no host holds.
    case hostByte(offset: Int, byte: UInt8)
    /// A label of the host that is empty or longer than 63 bytes.
    case hostLabel(offset: Int)
    /// A host longer than 253 bytes.
    case hostTooLong(offset: Int)
    /// A host that ends in a number and is not an IPv4 address of four decimal numbers.
    case hostNumber(offset: Int)
    /// Brackets that do not hold an IPv6 address.
    case ipv6(offset: Int)
    /// An IPv6 address with a zone (RFC 6874), which means something on one machine only.
    case ipv6Zone(offset: Int)
    /// A port that is not a number of 1 to 65535.
    case port(offset: Int)
}
