package import Ground

/// The field names that Nuthatch acts on (RFC 9110, 9111, 9211, W3C Trace Context); every other
/// name is ``other``.
///
/// The raw value is the bit number in ``FieldSet``.
package enum FieldName: UInt8, CaseIterable, Sendable {
    case other = 0
    case accept
    case acceptEncoding
    case acceptRanges
    case age
    case authorization
    case cacheControl
    case cacheStatus
    case connection
    case contentDisposition
    case contentEncoding
    case contentLanguage
    case contentLength
    case contentRange
    case contentType
    case cookie
    case date
    case etag
    case expect
    case expires
    case host
    case ifMatch
    case ifModifiedSince
    case ifNoneMatch
    case ifRange
    case ifUnmodifiedSince
    case keepAlive
    case lastModified
    case location
    case pragma
    case range
    case referer
    case server
    case setCookie
    case te
    case traceparent
    case tracestate
    case trailer
    case transferEncoding
    case upgrade
    case userAgent
    case vary
    case via
    case xRequestID

    /// The name in lower case, in which RFC 9110 §5.1 compares it; empty for ``other``.
    package var text: StaticString {
        switch self {
        case .other: ""
        case .accept: "accept"
        case .acceptEncoding: "accept-encoding"
        case .acceptRanges: "accept-ranges"
        case .age: "age"
        case .authorization: "authorization"
        case .cacheControl: "cache-control"
        case .cacheStatus: "cache-status"
        case .connection: "connection"
        case .contentDisposition: "content-disposition"
        case .contentEncoding: "content-encoding"
        case .contentLanguage: "content-language"
        case .contentLength: "content-length"
        case .contentRange: "content-range"
        case .contentType: "content-type"
        case .cookie: "cookie"
        case .date: "date"
        case .etag: "etag"
        case .expect: "expect"
        case .expires: "expires"
        case .host: "host"
        case .ifMatch: "if-match"
        case .ifModifiedSince: "if-modified-since"
        case .ifNoneMatch: "if-none-match"
        case .ifRange: "if-range"
        case .ifUnmodifiedSince: "if-unmodified-since"
        case .keepAlive: "keep-alive"
        case .lastModified: "last-modified"
        case .location: "location"
        case .pragma: "pragma"
        case .range: "range"
        case .referer: "referer"
        case .server: "server"
        case .setCookie: "set-cookie"
        case .te: "te"
        case .traceparent: "traceparent"
        case .tracestate: "tracestate"
        case .trailer: "trailer"
        case .transferEncoding: "transfer-encoding"
        case .upgrade: "upgrade"
        case .userAgent: "user-agent"
        case .vary: "vary"
        case .via: "via"
        case .xRequestID: "x-request-id"
        }
    }

    /// Identifies the field whose name, in any case, is in `range`.
    package init(_ bytes: Span<UInt8>, at range: Range<Int>) {
        guard range.count <= 24 else {
            self = .other
            return
        }
        let start = range.lowerBound
        self.init(
            first: Self.word(bytes, start, min(8, range.count)),
            second: Self.word(bytes, start + 8, min(8, range.count - 8)),
            third: Self.word(bytes, start + 16, range.count - 16))
    }

    /// Returns `count` bytes from `start` in lower case, the first in the lowest bits; 0 if `count`
    /// is not positive.
    @inline(__always)
    private static func word(_ bytes: Span<UInt8>, _ start: Int, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        var offset = 0
        while offset < count {
            word |= UInt64(ASCII.lowercased(bytes[start + offset])) << UInt64(8 * offset)
            offset += 1
        }
        return word
    }

    /// Identifies the field whose name in lower case is these words, padded with zeros; no name has
    /// more than 24 bytes.
    ///
    /// The first byte is the lowest byte of `first`. A word holds no zero before the last letter,
    /// so the words alone determine the length of the name.
    package init(first: UInt64, second: UInt64, third: UInt64) {
        if second == 0 {
            self = Self.short(first)
        } else if third == 0 {
            self = Self.middle(first, second)
        } else {
            self = Self.long(first, second, third)
        }
    }

    @inline(__always)
    private static func short(_ first: UInt64) -> FieldName {
        switch first {
        case 0x6574: .te
        case 0x0065_6761: .age
        case 0x0061_6976: .via
        case 0x6574_6164: .date
        case 0x6761_7465: .etag
        case 0x7473_6F68: .host
        case 0x7972_6176: .vary
        case 0x0065_676E_6172: .range
        case 0x6569_6B6F_6F63: .cookie
        case 0x7470_6563_6361: .accept
        case 0x7463_6570_7865: .expect
        case 0x616D_6761_7270: .pragma
        case 0x7265_7672_6573: .server
        case 0x0073_6572_6970_7865: .expires
        case 0x0072_6572_6566_6572: .referer
        case 0x0072_656C_6961_7274: .trailer
        case 0x0065_6461_7267_7075: .upgrade
        case 0x6863_7461_6D2D_6669: .ifMatch
        case 0x6567_6E61_722D_6669: .ifRange
        case 0x6E6F_6974_6163_6F6C: .location
        default: .other
        }
    }

    @inline(__always)
    private static func middle(_ first: UInt64, _ second: UInt64) -> FieldName {
        switch second {
        case 0x6E6F: first == 0x6974_6365_6E6E_6F63 ? .connection : .other
        case 0x6574: first == 0x6174_7365_6361_7274 ? .tracestate : .other
        case 0x6576: first == 0x696C_612D_7065_656B ? .keepAlive : .other
        case 0x6569: first == 0x6B6F_6F63_2D74_6573 ? .setCookie : .other
        case 0x746E: first == 0x6567_612D_7265_7375 ? .userAgent : .other
        case 0x0074_6E65: first == 0x7261_7065_6361_7274 ? .traceparent : .other
        case 0x6469_2D74: first == 0x7365_7571_6572_2D78 ? .xRequestID : .other
        case 0x7375_7461: first == 0x7473_2D65_6863_6163 ? .cacheStatus : .other
        case 0x6570_7974: first == 0x2D74_6E65_746E_6F63 ? .contentType : .other
        case 0x0073_6567_6E61: first == 0x722D_7470_6563_6361 ? .acceptRanges : .other
        case 0x006E_6F69_7461: first == 0x7A69_726F_6874_7561 ? .authorization : .other
        case 0x006C_6F72_746E: first == 0x6F63_2D65_6863_6163 ? .cacheControl : .other
        case 0x0065_676E_6172: first == 0x2D74_6E65_746E_6F63 ? .contentRange : .other
        case 0x0068_6374_616D: first == 0x2D65_6E6F_6E2D_6669 ? .ifNoneMatch : .other
        case 0x0064_6569_6669: first == 0x646F_6D2D_7473_616C ? .lastModified : .other
        case 0x6874_676E_656C: first == 0x2D74_6E65_746E_6F63 ? .contentLength : .other
        case 0x0067_6E69_646F_636E: first == 0x652D_7470_6563_6361 ? .acceptEncoding : .other
        case 0x676E_6964_6F63_6E65: first == 0x2D74_6E65_746E_6F63 ? .contentEncoding : .other
        case 0x6567_6175_676E_616C: first == 0x2D74_6E65_746E_6F63 ? .contentLanguage : .other
        default: .other
        }
    }

    @inline(__always)
    private static func long(_ first: UInt64, _ second: UInt64, _ third: UInt64) -> FieldName {
        switch second {
        case 0x636E_6973_2D64_6569:
            first == 0x6669_646F_6D2D_6669 && third == 0x0065 ? .ifModifiedSince : .other
        case 0x6E69_646F_636E_652D:
            first == 0x7265_6673_6E61_7274 && third == 0x0067 ? .transferEncoding : .other
        case 0x7469_736F_7073_6964:
            first == 0x2D74_6E65_746E_6F63 && third == 0x006E_6F69 ? .contentDisposition : .other
        case 0x6973_2D64_6569_6669:
            first == 0x646F_6D6E_752D_6669 && third == 0x0065_636E ? .ifUnmodifiedSince : .other
        default: .other
        }
    }
}

/// A set of known field names, one bit each.
package struct FieldSet: Hashable, Sendable {
    /// The bits; bit `n` stands for the name with the raw value `n`.
    package private(set) var bits: UInt64 = 0

    /// Creates an empty set.
    package init() {}

    /// Creates the set of the names whose raw values are the numbers of the set bits.
    package init(bits: UInt64) {
        self.bits = bits
    }

    /// Returns true if `name` is in the set.
    @inline(__always)
    package func contains(_ name: FieldName) -> Bool {
        bits & (1 << UInt64(name.rawValue)) != 0
    }

    /// Adds `name` to the set.
    @inline(__always)
    package mutating func insert(_ name: FieldName) {
        bits |= 1 << UInt64(name.rawValue)
    }
}

/// One field line of a message head: the extents of its name and value in the head's bytes.
///
/// The value's extent excludes the white space around it (RFC 9112 §5.1).
package struct FieldLine: Hashable, Sendable {
    /// The name, if it is one that Nuthatch acts on.
    package var id: FieldName
    /// The extent of the name.
    package var name: Extent
    /// The extent of the value, without white space around it.
    package var value: Extent

    /// Creates a field line from its parts.
    package init(id: FieldName, name: Extent, value: Extent) {
        self.id = id
        self.name = name
        self.value = value
    }
}

extension FieldSet {
    /// Returns true if no name is in both sets.
    @inline(__always)
    package func isDisjoint(with other: FieldSet) -> Bool {
        bits & other.bits == 0
    }
}
