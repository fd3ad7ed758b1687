import Ground
import HTTPRules

/// What the node asks itself for a URL, as a client would: of a site for what is on its host, of
/// the API for images for everything else.
struct InternalRequestHead: Hashable {
    /// The request's head, up to and with the empty line.
    let head: [UInt8]
    let isSecure: Bool
    /// A site answers.
    let isForSite: Bool

    /// Nil for what is no absolute URL; `accept` is a field's value.
    init?(_ url: String, accept: String, sites: SiteTable) {
        let bytes = Array(url.utf8)
        guard let parts = AbsoluteURL(bytes), !parts.host.isEmpty else { return nil }
        let host = bytes[parts.host]
        guard host.allSatisfy(Self.isHostByte) else { return nil }
        var target = Self.escaped(bytes[parts.target], Self.isTargetByte)
        if target.first != UInt8(ascii: "/") { target.insert(UInt8(ascii: "/"), at: 0) }
        isSecure = parts.isSecure
        isForSite = sites.find(bytes.span, at: parts.host, isSecure: isSecure) != nil
        var isForClients = isForSite
        if case .image = ImageTarget.parse(target.span, at: 0..<target.count) {
            isForClients = true
        }
        if !isForClients {
            let end = url.utf8.firstIndex(of: UInt8(ascii: "#")) ?? url.utf8.endIndex
            target =
                Array("/v1/image?url=".utf8)
                + Self.escaped(Array(url.utf8[..<end])[...], Self.isUnreserved)
        }
        var head = Array("GET ".utf8) + target + Array(" HTTP/1.1\r\nHost: ".utf8)
        head += host
        head += Array("\r\nAccept: \(accept)\r\n\r\n".utf8)
        self.head = head
    }

    private static func escaped(
        _ bytes: ArraySlice<UInt8>, _ isPlain: (UInt8) -> Bool
    ) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        for byte in bytes {
            if isPlain(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), hex(byte >> 4), hex(byte & 15)]
            }
        }
        return text
    }

    private static func hex(_ digit: UInt8) -> UInt8 {
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "A") + digit - 10
    }

    /// What may stand in a request's target; what the rest of it means is for who reads it.
    private static func isTargetByte(_ byte: UInt8) -> Bool { 0x21...0x7E ~= byte }

    /// What a name, an address and a port are written with.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"): true
        case UInt8(ascii: "~"): false
        default: isUnreserved(byte)
        }
    }

    /// RFC 3986 §2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
