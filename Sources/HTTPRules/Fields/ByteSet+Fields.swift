import Ground

extension ByteSet {
    /// The token characters and the slash between a type and its subtype (RFC 9110 §12.5.1).
    @inline(__always)
    static var mediaRange: ByteSet {
        ByteSet(low: 0x03FF_ECFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    }

    /// The unreserved characters (RFC 3986 §2.3), never percent-encoded in a canonical URL.
    @inline(__always)
    static var unreserved: ByteSet {
        ByteSet(low: 0x03FF_6000_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    }

    /// The ``unreserved`` characters and the further ones of Base64 (RFC 4648 §4).
    @inline(__always)
    static var requestID: ByteSet {
        ByteSet(low: 0x23FF_E800_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
    }

    /// The characters that need no escape in path and query (RFC 3986 §3.3, §3.4): `pchar` without
    /// escapes, `/` and `?`.
    @inline(__always)
    static var target: ByteSet {
        ByteSet(low: 0xAFFF_FFD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF)
    }

    /// The ``target`` characters without `.` and `?`, which need further checks in a path.
    @inline(__always)
    static var plainPath: ByteSet {
        ByteSet(low: 0x2FFF_BFD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFF)
    }

    /// The characters of a host name in a canonical URL: lower-case letters, digits, `-`, `_` and
    /// `.`.
    @inline(__always)
    static var host: ByteSet {
        ByteSet(low: 0x03FF_6000_0000_0000, high: 0x07FF_FFFE_8000_0000)
    }
}
